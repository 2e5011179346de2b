/* The plugin: what GStreamer loads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "elements.h"

#include <coxswain/version.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define VERSION TEXT(COX_VERSION_MAJOR) "." TEXT(COX_VERSION_MINOR) "." TEXT(COX_VERSION_PATCH)
#define PACKAGE "coxswain"

static gboolean plugin_init(GstPlugin *plugin)
{
    GST_DEBUG_CATEGORY_INIT(gst_cox_debug, "coxswain", 0, "Video on all OpenCL devices");
    const gboolean tonemap = GST_ELEMENT_REGISTER(coxtonemap, plugin),
                   convolve = GST_ELEMENT_REGISTER(coxconvolve, plugin);
    return tonemap && convolve;
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, coxswain,
                  "Video on all OpenCL devices of the machine", plugin_init, VERSION, "Apache 2.0",
                  PACKAGE, "Coxswain")
