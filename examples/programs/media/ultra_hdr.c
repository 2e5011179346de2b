/* SPDX-License-Identifier: Apache-2.0 */
#include "ultra_hdr.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { APP1 = 0xe1, APP2 = 0xe2 };

static const char xmp_name[] = "http://ns.adobe.com/xap/1.0/";
static const char iso_name[] = "urn:iso:std:iso:ts:21496:-1";
static const char mpf_name[] = "MPF";

static void put_bytes(struct ultra_hdr_segments *segments, const void *data, size_t bytes)
{
    memcpy(segments->data + segments->bytes, data, bytes);
    segments->bytes += bytes;
}

/* Most significant byte first. */
static void put(struct ultra_hdr_segments *segments, unsigned size, uint32_t value)
{
    while (size--)
        segments->data[segments->bytes++] = (uint8_t)(value >> (8 * size));
}

/* Begin a segment. Returns where it begins. */
static size_t begin(struct ultra_hdr_segments *segments, unsigned marker, const char *name)
{
    const size_t at = segments->bytes;
    put(segments, 4, 0xff000000 | marker << 16);
    put_bytes(segments, name, strlen(name) + 1);
    return at;
}

/* Set the length of a segment, which does not count the marker. */
static void end(struct ultra_hdr_segments *segments, size_t at)
{
    const size_t bytes = segments->bytes - at - 2;
    segments->data[at + 2] = (uint8_t)(bytes >> 8);
    segments->data[at + 3] = (uint8_t)bytes;
}

/* --- XMP -------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put_text(struct ultra_hdr_segments *segments,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    segments->bytes += (size_t)vsnprintf((char *)segments->data + segments->bytes,
                                         ULTRA_HDR_BYTES_MAX - segments->bytes, format, args);
    va_end(args);
}

static size_t begin_xmp(struct ultra_hdr_segments *segments)
{
    const size_t at = begin(segments, APP1, xmp_name);
    put_text(segments, "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF "
                       "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">"
                       "<rdf:Description rdf:about=\"\" "
                       "xmlns:hdrgm=\"http://ns.adobe.com/hdr-gain-map/1.0/\" "
                       "hdrgm:Version=\"1.0\"");
    return at;
}

static void end_xmp(struct ultra_hdr_segments *segments, size_t at)
{
    put_text(segments, "</rdf:Description></rdf:RDF></x:xmpmeta>");
    end(segments, at);
}

/* Multiples of 1/65536 with all their digits. */
static void put_list(struct ultra_hdr_segments *segments, const char *name, const double values[3])
{
    put_text(segments, "<hdrgm:%s><rdf:Seq>", name);
    for (int c = 0; c < 3; c++)
        put_text(segments, "<rdf:li>%.16f</rdf:li>", values[c]);
    put_text(segments, "</rdf:Seq></hdrgm:%s>", name);
}

static void put_map_xmp(struct ultra_hdr_segments *segments, const struct gain_map_made *map)
{
    const size_t at = begin_xmp(segments);
    put_text(segments,
             " hdrgm:BaseRenditionIsHDR=\"False\" hdrgm:Gamma=\"1\" hdrgm:OffsetSDR=\"0.015625\" "
             "hdrgm:OffsetHDR=\"0.015625\" hdrgm:HDRCapacityMin=\"0\" "
             "hdrgm:HDRCapacityMax=\"%.16f\">",
             map->headroom);
    put_list(segments, "GainMapMin", map->least);
    put_list(segments, "GainMapMax", map->most);
    end_xmp(segments, at);
}

static void put_base_xmp(struct ultra_hdr_segments *segments, size_t map_bytes)
{
    static const char item[] = "<rdf:li rdf:parseType=\"Resource\"><Container:Item "
                               "Item:Semantic=\"%s\" Item:Mime=\"image/jpeg\"";
    const size_t at = begin_xmp(segments);
    put_text(segments, " xmlns:Container=\"http://ns.google.com/photos/1.0/container/\" "
                       "xmlns:Item=\"http://ns.google.com/photos/1.0/container/item/\">"
                       "<Container:Directory><rdf:Seq>");
    put_text(segments, item, "Primary");
    put_text(segments, "/></rdf:li>");
    put_text(segments, item, "GainMap");
    put_text(segments, " Item:Length=\"%zu\"/></rdf:li></rdf:Seq></Container:Directory>",
             map_bytes);
    end_xmp(segments, at);
}

/* --- ISO 21496-1 ------------------------------------------------------------------------------ */

/* A signed or unsigned fraction. */
static void put_fraction(struct ultra_hdr_segments *segments, double value)
{
    put(segments, 4, (uint32_t)(int32_t)lround(value * 65536));
    put(segments, 4, 65536);
}

static void put_map_iso(struct ultra_hdr_segments *segments, const struct gain_map_made *map)
{
    enum { THREE_CHANNELS = 0x80, BASE_COLOURS = 0x40 };
    const size_t at = begin(segments, APP2, iso_name);
    put(segments, 4, 0); /* least version for readers, version of the writer */
    put(segments, 1, THREE_CHANNELS | BASE_COLOURS);
    put_fraction(segments, 0); /* headroom of SDR */
    put_fraction(segments, map->headroom);
    for (int c = 0; c < 3; c++) {
        put_fraction(segments, map->least[c]);
        put_fraction(segments, map->most[c]);
        put_fraction(segments, 1); /* gamma */
        put_fraction(segments, 1.0 / 64);
        put_fraction(segments, 1.0 / 64);
    }
    end(segments, at);
}

/* The SDR picture names the version alone. */
static void put_base_iso(struct ultra_hdr_segments *segments)
{
    const size_t at = begin(segments, APP2, iso_name);
    put(segments, 4, 0);
    end(segments, at);
}

/* --- MPF -------------------------------------------------------------------------------------- */

/* Places count from the first byte after the name. Returns where this is. */
static size_t put_mpf(struct ultra_hdr_segments *segments, uint32_t own_bytes, uint32_t map_bytes,
                      uint32_t map_place)
{
    enum { VERSION = 0xb000, COUNT = 0xb001, ENTRIES = 0xb002, LONG = 4, UNDEFINED = 7 };
    enum { FOLDER = 8, TAGS = 3, PLACE = FOLDER + 2 + TAGS * 12 + 4, PRIMARY = 0x030000 };
    const size_t at = begin(segments, APP2, mpf_name), first = segments->bytes;
    put_bytes(segments, "MM\0*", 4);
    put(segments, 4, FOLDER);

    put(segments, 2, TAGS);
    put(segments, 2, VERSION), put(segments, 2, UNDEFINED), put(segments, 4, 4);
    put_bytes(segments, "0100", 4);
    put(segments, 2, COUNT), put(segments, 2, LONG), put(segments, 4, 1), put(segments, 4, 2);
    put(segments, 2, ENTRIES), put(segments, 2, UNDEFINED), put(segments, 4, 32);
    put(segments, 4, PLACE);
    put(segments, 4, 0); /* no further folder */

    put(segments, 4, PRIMARY), put(segments, 4, own_bytes), put(segments, 4, 0);
    put(segments, 4, 0); /* depends on no other picture */
    put(segments, 4, 0), put(segments, 4, map_bytes), put(segments, 4, map_place);
    put(segments, 4, 0);
    end(segments, at);
    return first;
}

void ultra_hdr_of_map(struct ultra_hdr_segments *segments, const struct gain_map_made *map)
{
    segments->bytes = 0;
    put_map_xmp(segments, map);
    put_map_iso(segments, map);
}

void ultra_hdr_of_base(struct ultra_hdr_segments *segments, size_t before_bytes, size_t own_bytes,
                       size_t map_bytes)
{
    segments->bytes = 0;
    put_base_xmp(segments, map_bytes);
    put_base_iso(segments);

    /* MPF names the size of the picture with MPF. */
    const size_t begins = segments->bytes;
    const size_t place = before_bytes + put_mpf(segments, 0, 0, 0);
    const size_t whole = own_bytes + segments->bytes;
    segments->bytes = begins;
    put_mpf(segments, (uint32_t)whole, (uint32_t)map_bytes, (uint32_t)(whole - place));
}
