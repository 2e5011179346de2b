/* coxtonemap's properties: cox-tonemap's options with the same names, and the library's settings
 * from them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GST_COX_PROPERTIES_H
#define GST_COX_PROPERTIES_H

#include "caps.h"

/* A property's number for GObject. */
enum property {
    PROPERTY_OPERATOR = 1,
    PROPERTY_PEAK,
    PROPERTY_LOOKAHEAD,
    PROPERTY_SDR_WHITE,
    PROPERTY_EXPOSURE,
    PROPERTY_DESATURATE,
    PROPERTY_DITHER,
    PROPERTY_GAMUT,
    PROPERTY_GAMUT_KNEE,
    PROPERTY_DETAIL,
    PROPERTY_TRUST_METADATA,
    PROPERTIES_OF_LOOK, /* those before hold from the next frame on, those after from a start */
    PROPERTY_TRANSFER,
    PROPERTY_PRIMARIES,
    PROPERTY_PASSTHROUGH_SDR,
    PROPERTY_DEVICES,
    PROPERTY_POLICY,
    PROPERTY_IN_FLIGHT,
    PROPERTY_VERIFY,
    PROPERTY_CACHE_DIR,
    PROPERTY_STATS, /* the element's own */
};

/* Their values. */
struct properties {
    enum cox_operator op;
    double peak_nits; /* 0 = auto */
    gboolean lookahead;
    double sdr_white_nits;
    double exposure_stops;
    double desaturate;
    enum cox_tristate dither;
    enum cox_gamut_choice gamut;
    double gamut_knee;
    double detail;
    gboolean trust_metadata;
    int transfer; /* as in caps_rules */
    int primaries;
    gboolean passthrough_sdr;
    char *devices;
    char *policy;
    guint in_flight;
    double verify;
    char *cache_dir;
};

/* Install all of them, PROPERTY_STATS too. */
void properties_install(GObjectClass *class);

void properties_init(struct properties *properties);
void properties_clear(struct properties *properties);

/* False if the number is not one of theirs. */
bool properties_set(struct properties *properties, guint number, const GValue *value);
bool properties_get(const struct properties *properties, guint number, GValue *value);

/* The library's options from the properties. */
void properties_look(const struct properties *properties, struct cox_tonemap_options *out);

#endif
