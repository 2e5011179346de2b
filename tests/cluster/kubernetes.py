"""Checks for examples/programs/cluster/kubernetes.yaml. It must satisfy job.schema.json and the rules that a schema cannot
express. Manifests with one fault must be refused. Its commands must be valid for cox-tonemap.

    python3 kubernetes.py COX_TONEMAP KUBERNETES_YAML JOB_SCHEMA_JSON

SPDX-License-Identifier: Apache-2.0
"""
import copy
import json
import os
import subprocess
import sys

import jsonschema
import yaml

tonemap, manifest, schema = sys.argv[1:]
with open(schema, encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
passed = failed = 0


def check(good, what):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print("FAILED:", what)


class Loader(yaml.SafeLoader):
    """Refuses duplicate keys, as Kubernetes does. The yaml module would use the last one."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"the key {key!r} is there twice")
        return super().construct_mapping(node, deep)


def rules(job):
    """Rules between several values of a job that the schema accepts. Yields a line for each broken rule."""
    spec = job["spec"]
    pod = spec["template"]["spec"]
    containers = [container["name"] for container in pod["containers"]]
    volumes = [volume["name"] for volume in pod.get("volumes", [])]
    completions = spec.get("completions", 1)
    if len(set(containers)) < len(containers):
        yield "two containers have one name"
    if len(set(volumes)) < len(volumes):
        yield "two volumes have one name"
    for container in pod["containers"]:
        mounts = container.get("volumeMounts", [])
        paths = [mount["mountPath"] for mount in mounts]
        if len(set(paths)) < len(paths):
            yield "two volumes are mounted at one place"
        if {mount["name"] for mount in mounts} - set(volumes):
            yield "a volume is mounted that is not there"
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        codes = rule.get("onExitCodes", {"values": []})
        if codes["values"] != sorted(codes["values"]):
            yield "exit codes are not in order"
        if codes.get("containerName", containers[0]) not in containers:
            yield "exit codes of a container that is not there"
    if spec.get("completionMode") == "Indexed":
        # The pods' host names are the job's name and the index.
        if len(f"{job['metadata']['name']}-{max(completions - 1, 0)}") > 63:
            yield "the name is too long for the pods' host names"
        if spec.get("maxFailedIndexes", 0) > completions:
            yield "more indexes may fail than there are"


def faults(job):
    """The faults of a job: one line each, with place and fault."""
    lines = [f"{'.'.join(str(step) for step in error.absolute_path)}: {error.message}" for error in validator.iter_errors(job)]
    return lines or list(rules(job))


def load(text):
    """The jobs of a file, or its fault as one line."""
    try:
        return list(yaml.load_all(text, Loader))
    except yaml.YAMLError as error:
        return str(error)


with open(manifest, encoding="utf-8") as file:
    text = file.read()
documents = load(text)
check(isinstance(documents, list), f"the manifest is read: {documents}")
names, *jobs = documents
check(names["kind"] == "ConfigMap" and names["apiVersion"] == "v1", "the names are first")
check(all(isinstance(value, str) for value in names["data"].values()), "names are strings")
for job in jobs:
    check(not faults(job), f"{job.get('metadata', {}).get('name')}: {faults(job)}")
check([job["metadata"]["name"] for job in jobs] == ["film-analyse", "film-steer", "film-map", "film-join"], "four steps in order")
if failed:
    print(f"{passed} passed, {failed} failed")
    sys.exit(1)

# --- Manifests with one fault each, which must be found ---


def put(*path):
    """A change that sets a value. `path` is the path to a key or an index, followed by the value."""

    def change(job):
        at = job
        for step in path[:-2]:
            at = at[step]
        at[path[-2]] = path[-1]

    return change


def drop(*path):
    def change(job):
        at = job
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


def rename(path, new):
    def change(job):
        at = job
        for step in path[:-1]:
            at = at[step]
        at[new] = at.pop(path[-1])

    return change


def both(*changes):
    def change(job):
        for one in changes:
            one(job)

    return change


pod = ("spec", "template", "spec")
container = (*pod, "containers", 0)
rule = ("spec", "podFailurePolicy", "rules", 0)
codes = (*rule, "onExitCodes")
per_index = put("spec", "backoffLimitPerIndex", 2)
# (a change to the first job, part of the message about it)
broken = [
    (rename(("spec", "backoffLimit"), "backofLimit"), "'backofLimit' was unexpected"),
    (rename((*container, "volumeMounts"), "volumeMount"), "'volumeMount' was unexpected"),
    (put("kind", "CronJob"), "kind: 'Job' was expected"),
    (put("apiVersion", "batch/v1beta1"), "apiVersion: 'batch/v1' was expected"),
    (drop("metadata", "name"), "metadata: 'name' is a required"),
    (put("metadata", "name", "film_analyse"), "metadata.name: 'film_analyse' does not match"),
    (put("metadata", "name", "Film"), "metadata.name: 'Film' does not match"),
    (put("metadata", "name", "film-"), "metadata.name: 'film-' does not match"),
    (put("metadata", "name", "f" * 64), "metadata.name: "),
    (put("metadata", "name", "f" * 62), "too long for the pods' host names"),
    (put("metadata", "labels", {"film": "a b"}), "metadata.labels.film: 'a b' does not match"),
    (put("metadata", "labels", {"film": 7}), "metadata.labels.film: 7 is not of type 'string'"),
    (drop("spec", "template"), "spec: 'template' is a required"),
    (put("spec", "completions", "64"), "spec.completions: '64' is not of type 'integer'"),
    (put("spec", "completions", True), "spec.completions: True is not of type 'integer'"),
    (put("spec", "completions", -1), "spec.completions: -1 is less than"),
    (drop("spec", "completions"), "spec: 'completions' is a required"),
    (put("spec", "completionMode", "indexed"), "spec.completionMode: 'indexed' is not one of"),
    (put("spec", "parallelism", 100001), "spec.parallelism: 100001 is greater"),
    (both(per_index, drop("spec", "completionMode")), "spec: 'completionMode' is a required"),
    (both(per_index, put("spec", "completionMode", "NonIndexed")), "spec.completionMode: 'Indexed' was expected"),
    (both(per_index, drop("spec", "podFailurePolicy"), put(*pod, "restartPolicy", "OnFailure")), "restartPolicy: 'Never' was expected"),
    (put("spec", "maxFailedIndexes", 1), "spec: 'backoffLimitPerIndex' is a dependency of 'maxFailedIndexes'"),
    (both(per_index, put("spec", "maxFailedIndexes", 65)), "more indexes may fail"),
    (put("spec", "podReplacementPolicy", "TerminatingOrFailed"), "spec.podReplacementPolicy: 'Failed' was expected"),
    (put(*pod, "restartPolicy", "OnFailure"), "restartPolicy: 'Never' was expected"),
    (put(*pod, "restartPolicy", "Always"), "restartPolicy: 'Always' is not one of"),
    (drop(*pod, "restartPolicy"), "'restartPolicy' is a required"),
    (put(*rule, "action", "Fail"), "action: 'Fail' is not one of"),
    (put(*rule, "action", "FailIndex"), "action: 'FailIndex' should not be valid"),
    (drop(*rule, "onExitCodes"), "is not valid under any of the given schemas"),
    (put(*rule, "onPodConditions", [{"type": "DisruptionTarget", "status": "True"}]), "is valid under each of"),
    (both(drop(*codes), put(*rule, "onPodConditions", [{"type": "DisruptionTarget", "status": True}])), "True is not one of"),
    (put(*codes, "operator", "Equals"), "operator: 'Equals' is not one of"),
    (put(*codes, "values", [0, 2]), "values.0: 0 should not be valid"),
    (put(*codes, "values", [2, 2]), "has non-unique elements"),
    (put(*codes, "values", [3, 2]), "exit codes are not in order"),
    (put(*codes, "values", ["3"]), "values.0: '3' is not of type 'integer'"),
    (put(*codes, "values", []), "values: []"),
    (put(*codes, "containerName", "other"), "exit codes of a container that is not there"),
    (put(*pod, "containers", []), "containers: []"),
    (put(*container, "name", "Tone"), "name: 'Tone' does not match"),
    (drop(*container, "image"), "'image' is a required"),
    (put(*container, "command", "sh"), "command: 'sh' is not of type 'array'"),
    (put(*container, "args", [64]), "args.0: 64 is not of type 'string'"),
    (put(*container, "env", [{"name": "ENCODE", "value": 18}]), "env.0.value: 18 is not of type 'string'"),
    (put(*container, "env", [{"name": "1ST"}]), "env.0.name: '1ST' does not match"),
    (put(*container, "envFrom", [{"configMapRef": "film"}]), "envFrom.0.configMapRef: 'film' is not of type 'object'"),
    (put(*container, "envFrom", [{"configMapRef": {"name": "the film"}}]), "'the film' does not match"),
    (put(*container, "resources", {"limits": {"memory": "4 GB"}}), "memory: '4 GB' is not valid"),
    (put(*container, "resources", {"limits": {"memory": "4GiB"}}), "memory: '4GiB' is not valid"),
    (put(*container, "resources", {"limits": {"nvidia.com/gpu": 0.5}}), "gpu: 0.5 is not valid"),
    (put(*container, "resources", {"limits": {"gpu": 1}}), "limits: 'gpu' does not match"),
    (put(*container, "volumeMounts", 0, "name", "films"), "a volume is mounted that is not there"),
    (put(*container, "volumeMounts", 0, "mountPath", "film"), "mountPath: 'film' does not match"),
    (put(*container, "volumeMounts", [{"name": "film", "mountPath": "/film"}] * 2), "mounted at one place"),
    (put(*pod, "volumes", 0, "emptyDir", {}), "too many properties"),
    (drop(*pod, "volumes", 0, "persistentVolumeClaim"), "enough properties"),
    (put(*pod, "volumes", 0, "persistentVolumeClaim", {}), "'claimName' is a required"),
    (put(*pod, "volumes", 0, "persistentVolumeClaim", "claimName", "the film"), "claimName: 'the film' does not match"),
    (lambda job: job["spec"]["template"]["spec"]["volumes"].append({"name": "film", "emptyDir": {}}), "two volumes have one name"),
    (lambda job: job["spec"]["template"]["spec"]["containers"].append({"name": "tonemap", "image": "a"}), "two containers have one"),
]
for change, expected in broken:
    job = copy.deepcopy(jobs[0])
    change(job)
    told = faults(job)
    check(any(expected in line for line in told), f"a fault is not reported as '{expected}': {told}")
check("twice" in load(text.replace("kind: Job\n", "kind: Job\nkind: Job\n", 1)), "a key is there twice")

# Changes that the recipe may need later must be accepted.
for change in [
    both(per_index, put("spec", "maxFailedIndexes", 3), put(*rule, "action", "FailIndex")),
    both(drop("spec", "podFailurePolicy"), put(*pod, "restartPolicy", "OnFailure")),
    put(*codes, "operator", "NotIn"),
    both(put(*codes, "operator", "NotIn"), put(*codes, "values", [0, 1])),
    put(*container, "resources", {"limits": {"nvidia.com/gpu": 1, "memory": "4Gi", "cpu": "500m"}, "requests": {"cpu": 1.5}}),
    put(*pod, "volumes", [{"name": "film", "nfs": {"server": "files", "path": "/film"}}]),
    put(*pod, "nodeSelector", {"nvidia.com/gpu.product": "H100"}),
]:
    job = copy.deepcopy(jobs[0])
    change(job)
    check(not faults(job), f"a valid manifest is refused: {faults(job)}")

# --- The commands with missing files: errors must be about the files, not about the arguments ---

for job in jobs:
    name, spec = job["metadata"]["name"], job["spec"]
    for one in spec["template"]["spec"]["containers"]:
        check(one["command"] == ["sh", "-c"] and len(one["args"]) == 1, f"{name}: its command")
        check(one["envFrom"] == [{"configMapRef": {"name": names["metadata"]["name"]}}], f"{name}: its names")
        data = {key: value.replace("/film/", "no-such-folder/") for key, value in names["data"].items()}
        words = one["args"][0].replace("exec cox-tonemap", f"exec '{tonemap}'")
        if "completions" in spec:
            check(f"/{spec['completions']} " in words.replace("\n", " ") + " ", f"{name}: as many shares as pods")
        if os.access(tonemap, os.X_OK):
            ran = subprocess.run(["sh", "-c", words], env={**os.environ, **data, "JOB_COMPLETION_INDEX": "7"}, capture_output=True, text=True)
            check(ran.returncode == 1 and "no-such-folder" in ran.stderr, f"{name}: {ran.returncode} {ran.stderr}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
