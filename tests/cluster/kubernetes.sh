#!/bin/sh
# examples/programs/cluster/kubernetes.yaml is valid for Kubernetes' batch/v1, as far as a schema and some rules can
# check, and its commands are valid for cox-tonemap.
#   sh kubernetes.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
for module in yaml jsonschema; do
    python3 -c "import $module" 2>/dev/null || skip "Python's $module is missing"
done
tests=$source/tests/cluster
expect_status 0 'the manifest' python3 "$tests/kubernetes.py" "$bin/cox-tonemap" "$source/examples/programs/cluster/kubernetes.yaml" "$tests/job.schema.json"
finish
