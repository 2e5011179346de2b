# The bill of materials: what this build is made of, as SPDX 2.3. It is installed with the documents.
# Nothing in it depends on the time or place of the build, so that packages stay reproducible.
# SPDX-License-Identifier: Apache-2.0
set(sbom_packages)
set(sbom_relations)

# cox_sbom(NAME VERSION LICENCE RELATION): add a dependency. RELATION is that of SPDX: the library needs it
# (DEPENDENCY_OF), or a program does if it is there (OPTIONAL_DEPENDENCY_OF). Nothing if VERSION is empty.
function(cox_sbom name version licence relation)
    if(NOT version)
        return()
    endif()
    string(REGEX REPLACE "[^A-Za-z0-9]" "-" id "${name}")
    string(APPEND sbom_packages ",
    {
      \"SPDXID\": \"SPDXRef-${id}\",
      \"name\": \"${name}\",
      \"versionInfo\": \"${version}\",
      \"downloadLocation\": \"NOASSERTION\",
      \"licenseConcluded\": \"NOASSERTION\",
      \"licenseDeclared\": \"${licence}\",
      \"copyrightText\": \"NOASSERTION\",
      \"filesAnalyzed\": false
    }")
    string(APPEND sbom_relations ",
    {
      \"spdxElementId\": \"SPDXRef-${id}\",
      \"relationshipType\": \"${relation}\",
      \"relatedSpdxElement\": \"SPDXRef-coxswain\"
    }")
    set(sbom_packages "${sbom_packages}" PARENT_SCOPE)
    set(sbom_relations "${sbom_relations}" PARENT_SCOPE)
endfunction()

cox_sbom(hwloc "${HWLOC_VERSION}" BSD-3-Clause DEPENDENCY_OF)
cox_sbom(libuv "${UV_VERSION}" MIT DEPENDENCY_OF)
cox_sbom("OpenCL ICD loader" "${OpenCL_VERSION_STRING}" NOASSERTION DEPENDENCY_OF)
if(COX_PROGRAMS)
    cox_sbom(libpng "${PNG_VERSION}" libpng-2.0 OPTIONAL_DEPENDENCY_OF)
    cox_sbom(OpenEXR "${OPENEXR_VERSION}" BSD-3-Clause OPTIONAL_DEPENDENCY_OF)
    cox_sbom(libavif "${AVIF_VERSION}" BSD-2-Clause OPTIONAL_DEPENDENCY_OF)
    cox_sbom(libheif "${HEIF_VERSION}" LGPL-3.0-or-later OPTIONAL_DEPENDENCY_OF)
    cox_sbom(libjxl "${JXL_VERSION}" BSD-3-Clause OPTIONAL_DEPENDENCY_OF)
    cox_sbom(libjpeg "${JPEG_VERSION}" IJG OPTIONAL_DEPENDENCY_OF)
    cox_sbom(libavformat "${LIBAV_libavformat_VERSION}" NOASSERTION OPTIONAL_DEPENDENCY_OF)
    cox_sbom(libavcodec "${LIBAV_libavcodec_VERSION}" NOASSERTION OPTIONAL_DEPENDENCY_OF)
    cox_sbom(libavutil "${LIBAV_libavutil_VERSION}" NOASSERTION OPTIONAL_DEPENDENCY_OF)
    cox_sbom(Jansson "${JANSSON_VERSION}" MIT OPTIONAL_DEPENDENCY_OF)
    cox_sbom(SQLite "${SQLITE_VERSION}" blessing OPTIONAL_DEPENDENCY_OF)
    cox_sbom(GStreamer "${GSTREAMER_gstreamer-1.0_VERSION}" LGPL-2.0-or-later OPTIONAL_DEPENDENCY_OF)
endif()

# The same content has the same name.
string(SHA256 sbom_hash "${PROJECT_VERSION}${sbom_packages}${sbom_relations}")
string(TIMESTAMP sbom_created "%Y-%m-%dT%H:%M:%SZ" UTC) # obeys SOURCE_DATE_EPOCH
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
    set(sbom_created "1970-01-01T00:00:00Z")
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/coxswain.spdx.json CONTENT [=[{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "coxswain-@PROJECT_VERSION@",
  "documentNamespace": "urn:sha256:@sbom_hash@",
  "creationInfo": {
    "created": "@sbom_created@",
    "creators": ["Organization: Coxswain maintainers"]
  },
  "documentDescribes": ["SPDXRef-coxswain"],
  "packages": [
    {
      "SPDXID": "SPDXRef-coxswain",
      "name": "coxswain",
      "versionInfo": "@PROJECT_VERSION@",
      "downloadLocation": "NOASSERTION",
      "licenseConcluded": "Apache-2.0",
      "licenseDeclared": "Apache-2.0",
      "copyrightText": "NOASSERTION",
      "filesAnalyzed": false
    }@sbom_packages@
  ],
  "relationships": [
    {
      "spdxElementId": "SPDXRef-DOCUMENT",
      "relationshipType": "DESCRIBES",
      "relatedSpdxElement": "SPDXRef-coxswain"
    }@sbom_relations@
  ]
}
]=] @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/coxswain.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR})
