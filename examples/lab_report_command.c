/* SPDX-License-Identifier: Apache-2.0 */
#include "lab.h"

int lab_report_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    lab_fail("not built yet");
    return LAB_USAGE;
}
