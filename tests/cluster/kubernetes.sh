#!/bin/sh
# examples/cluster/kubernetes.yaml is what Kubernetes' batch/v1 takes, as far as a few rules tell, and its commands are cox-tonemap's.
#   sh kubernetes.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
python3 -c 'import yaml' 2>/dev/null || {
    echo "skipped, because Python's yaml is missing"
    exit 77
}
exec python3 - "$1/cox-tonemap" "$2/examples/cluster/kubernetes.yaml" <<'END'
import os, subprocess, sys, tempfile, yaml

tonemap, path = sys.argv[1:]
passed = failed = 0

def check(good, what):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print("FAILED:", what)

def only(thing, allowed, needed, where):
    check(isinstance(thing, dict), f"{where}: a mapping")
    check(set(thing) <= allowed, f"{where}: {set(thing) - allowed}")
    check(needed <= set(thing), f"{where}: lacks {needed - set(thing)}")

jobs = list(yaml.safe_load_all(open(path)))
check([j["metadata"]["name"] for j in jobs] == ["film-analyse", "film-steer", "film-map", "film-join"], "four steps in order")
for job in jobs:
    name = job["metadata"]["name"]
    only(job, {"apiVersion", "kind", "metadata", "spec"}, {"apiVersion", "kind", "metadata", "spec"}, name)
    check(job["apiVersion"] == "batch/v1" and job["kind"] == "Job", f"{name}: a job")
    spec = job["spec"]
    only(spec, {"completionMode", "completions", "parallelism", "backoffLimit", "podFailurePolicy", "template"}, {"template"}, name)
    check(("completionMode" in spec) == ("completions" in spec), f"{name}: indexed jobs say how many")
    if "completionMode" in spec:
        check(spec["completionMode"] == "Indexed" and isinstance(spec["completions"], int), f"{name}: indexed")
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        only(rule, {"action", "onExitCodes"}, {"action", "onExitCodes"}, name)
        check(rule["action"] == "FailJob" and rule["onExitCodes"]["operator"] == "In" and
              all(isinstance(v, int) and v for v in rule["onExitCodes"]["values"]), f"{name}: exit codes")
    pod = spec["template"]["spec"]
    only(pod, {"restartPolicy", "containers", "volumes"}, {"restartPolicy", "containers"}, name)
    check(pod["restartPolicy"] == "Never", f"{name}: a policy on failures wants Never")
    volumes = {v["name"] for v in pod["volumes"]}
    for container in pod["containers"]:
        only(container, {"name", "image", "command", "args", "volumeMounts"}, {"name", "image"}, name)
        check({m["name"] for m in container["volumeMounts"]} <= volumes, f"{name}: volumes")
        check(container["command"] == ["sh", "-c"] and len(container["args"]) == 1, f"{name}: its command")
        # The command with files that are not there: what it says is of them, not of its words.
        words = container["args"][0].replace("/film/", "no-such-folder/")
        words = words.replace("exec cox-tonemap", f"exec '{tonemap}'")
        if "completions" in spec:
            check(f"/{spec['completions']} " in words.replace("\n", " ") + " ", f"{name}: as many shares as pods")
        if os.access(tonemap, os.X_OK):
            ran = subprocess.run(["sh", "-c", words], env={**os.environ, "JOB_COMPLETION_INDEX": "7"}, capture_output=True, text=True)
            check(ran.returncode == 1 and "no-such-folder" in ran.stderr, f"{name}: {ran.returncode} {ran.stderr}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
END
