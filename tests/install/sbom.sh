#!/bin/sh
# The bill of materials names every library that the built files are linked with, and is valid JSON.
#   sbom.sh SPDX_FILE FILE...
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
need readelf python3
sbom=$1
shift

python3 - "$sbom" >names <<'END' || fail 'it is not JSON with these fields'
import json, sys
document = json.load(open(sys.argv[1]))
assert document["spdxVersion"] == "SPDX-2.3" and document["documentNamespace"].startswith("urn:sha256:")
ids = {package["SPDXID"] for package in document["packages"]}
assert len(ids) == len(document["packages"])
for relation in document["relationships"]:
    assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= ids | {"SPDXRef-DOCUMENT"}
for package in document["packages"]:
    assert package["versionInfo"]
    print(package["name"])
END

linked=0
for library in $(readelf -dW "$@" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | sort -u); do
    case $library in
    libc.so.* | libm.so.* | ld-linux* | libcoxswain.so.*) continue ;;
    libhwloc.so.*) name=hwloc ;;
    libuv.so.*) name=libuv ;;
    libOpenCL.so.*) name='OpenCL ICD loader' ;;
    libpng*.so.*) name=libpng ;;
    libOpenEXRCore*) name=OpenEXR ;;
    libavif.so.*) name=libavif ;;
    libheif.so.*) name=libheif ;;
    libjxl.so.*) name=libjxl ;;
    libjpeg.so.*) name=libjpeg ;;
    libjansson.so.*) name=Jansson ;;
    libsqlite3.so.*) name=SQLite ;;
    *) name=$library ;;
    esac
    linked=$((linked + 1))
    what=$library
    check "the bill of materials lacks '$name'" grep -qx "$name" names
done
what='all files'
check 'they are linked with no library' [ "$linked" -gt 0 ]
finish
