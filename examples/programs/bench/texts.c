/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include <string.h>

const char *bench_text(const char *name)
{
    for (const struct bench_text *text = bench_texts; text->name; text++)
        if (strcmp(text->name, name) == 0)
            return text->text;

    return "";
}
