/* The plugin's elements.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GST_COX_ELEMENTS_H
#define GST_COX_ELEMENTS_H

#include <gst/gst.h>

GST_DEBUG_CATEGORY_EXTERN(gst_cox_debug);

GST_ELEMENT_REGISTER_DECLARE(coxtonemap);
GST_ELEMENT_REGISTER_DECLARE(coxconvolve);

#endif
