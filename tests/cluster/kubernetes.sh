#!/bin/sh
# examples/cluster/kubernetes.yaml is what Kubernetes' batch/v1 takes, as far as a schema and some rules tell, and its commands are
# cox-tonemap's.
#   sh kubernetes.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
for module in yaml jsonschema; do
    python3 -c "import $module" 2>/dev/null || {
        echo "skipped, because Python's $module is missing"
        exit 77
    }
done
here=$(dirname "$0")
exec python3 "$here/kubernetes.py" "$1/cox-tonemap" "$2/examples/cluster/kubernetes.yaml" "$here/job.schema.json"
