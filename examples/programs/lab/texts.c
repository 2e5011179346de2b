/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include <string.h>

const char *lab_text(const char *name)
{
    for (const struct lab_text *text = lab_texts; text->name; text++)
        if (strcmp(text->name, name) == 0)
            return text->text;
    return "";
}
