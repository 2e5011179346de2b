/* SPDX-License-Identifier: Apache-2.0 */
#include "option_table.h"

#include <stddef.h>

const char option_help[] =
    "Usage: cox-tonemap INPUT... -o OUTPUT [options]\n"
    "       cox-tonemap analyse|steer|map|join ... -o OUTPUT [options]\n"
    "\n"
    "Tone-maps HDR video or an HDR picture to SDR, on all OpenCL devices together.\n"
    "\n"
    "  cox-tonemap movie.mkv -o movie.y4m\n"
    "  cox-tonemap movie.mkv -o still.png --frame 1000 --operator bt2390\n"
    "  cox-tonemap room.exr -o room.png --peak 4000 --devices gpu,cpu\n"
    "\n"
    "  INPUT               video: y4m, raw frames, and what libavformat reads where\n"
    "                      it is built in; picture: OpenEXR, Radiance .hdr, PFM.\n"
    "                      Told by content; - is standard input. Several go\n"
    "                      to a folder, one after the other\n"
    "  -o, --output FILE   video: .mkv, .mp4, .y4m, .nv12, .p010, or .png for one\n"
    "                      frame; null: for nothing; picture: .png. - is standard\n"
    "                      output. A folder: a file there of the input's name\n"
    "  --to KIND           video: mkv, mp4, y4m, nv12, p010, png or null, whatever\n"
    "                      the output's name\n"
    "\n"
    "A finished file (.mkv, .mp4), with the input's sound and subtitles:\n"
    "  --encoder NAME[:KEY=VALUE,...]\n"
    "                      libavcodec's encoder and its options (default libx264)\n"
    "  --crf N             its quality: less is better and larger\n"
    "  --preset NAME       its speed: ultrafast to veryslow\n"
    "  --overwrite         replace a finished file that exists\n"
    "\n"
    "How the result looks:\n"
    "  --operator NAME     hable (default), reinhard, mobius, bt2390, aces, linear,\n"
    "                      clip, local, exposure (pictures)\n"
    "  --peak NITS|auto    the brightest light that keeps its gradation, in cd/m2;\n"
    "                      auto (default): from the picture, or from scene to scene\n"
    "  --exposure STOPS    brighten (> 0) or darken (< 0); added to what --peak auto\n"
    "                      finds\n"
    "  --desat STRENGTH    how much colours brighter than white fade to white, 0 to\n"
    "                      1 (default 0.75)\n"
    "  --detail FACTOR     --operator local: factor on the contrast of the detail,\n"
    "                      0.25 to 4; 1 (default): as in the light\n"
    "  --depth BITS        PNG: 8 or 16; y4m, mkv, mp4: 8 or 10 (default 8)\n"
    "  --alpha             pictures: keep an alpha channel (default: transparent\n"
    "                      parts lie over black)\n"
    "  --sdr-white NITS    video: the light that becomes SDR white (default 203)\n"
    "  --dither WHICH      video: none or ordered (default: ordered where the output\n"
    "                      has fewer bits than the input)\n"
    "  --gamut WHICH       video: compress[:KNEE] or clip: colours that SDR has not\n"
    "                      move towards grey and keep their hue (default of\n"
    "                      BT.2020), or are cut\n"
    "  --scale 1/2|WxH     video: half the width and height; or another size, also\n"
    "                      Wx or xH, to keep the picture's shape\n"
    "\n"
    "What the video is, where it does not say so itself:\n"
    "  --transfer CURVE    pq (default of more than 8 bits), hlg or linear\n"
    "  --primaries WHICH   bt2020 (default) or bt709\n"
    "  --range WHICH       limited (default) or full\n"
    "  --size WxH          the input is raw frames of this size\n"
    "  --format NAME       their format: yuv420p10, p010, nv12, rgba16f, ...;\n"
    "                      default: by the name's ending\n"
    "  --rate FPS          frames per second: 25, 23.976 or 24000/1001\n"
    "\n"
    "Which frames of the video:\n"
    "  --start N           begin with frame N, counted from 0\n"
    "  --frames N          end after N frames\n"
    "  --frame N           only frame N, as a PNG\n"
    "  --lookahead 0|1     with --peak auto: 1 looks at each frame before it is\n"
    "                      mapped (default 0)\n"
    "  --trust-metadata    with --peak auto: no light over the peak that the stream\n"
    "                      names (default: what the frames show counts)\n"
    "\n"
    "A film in pieces, by as many machines as there are (docs: pieces.md):\n"
    "  analyse FILM -o PART        look at a part of it\n"
    "  steer PART... -o SCENE      find each frame's light from all parts\n"
    "  map FILM --scene SCENE -o PIECE.mkv|.y4m\n"
    "                              map a piece of it\n"
    "  join PIECE... -o OUTPUT     put the pieces together\n"
    "  --range FIRST:END   analyse, map: frames from FIRST up to END, not with it\n"
    "  --share I/N         analyse, map: the I-th of N equal parts, from 1\n"
    "  --scene FILE        each frame's light, and all else that decides how it looks\n"
    "  --source FILE       join: sound, subtitles and the rest come from there\n"
    "\n"
    "The devices and the split:\n"
    "  --devices LIST      cpu, gpu, all, PLATFORM.DEVICE, part of a name; :NxC for\n"
    "                      N sub-devices of C compute units; =shared, =mapped or\n"
    "                      =staged; comma-separated (default: every device)\n"
    "  --policy NAME       how rows are shared out; --policy help lists the names\n"
    "  --split A,B,...     fixed shares of the rows, one for each device, summing\n"
    "                      to 1\n"
    "  --reserve WHICH     keep a core for feeding devices: auto (default), on, off\n"
    "                      or a CPU's number\n"
    "  --arithmetic WHICH  fma, muladd, or auto (default): fma where all devices are\n"
    "                      quick at it. The same bits everywhere need the same\n"
    "  --in-flight N       frames under way at once, 1 to 16 (default 2)\n"
    "  --deadline MS       count the frames that take longer from when the devices\n"
    "                      are given them to when they are done\n"
    "  --no-cache          compile the kernels and measure the devices anew\n"
    "  --verify SHARE      have that share of the bands done by two devices and\n"
    "                      compared, 0 to 1 (default 0)\n"
    "\n"
    "Measuring:\n"
    "  --repeat N          do the picture N times (default 1)\n"
    "  --stats FILE        write what each frame cost, as JSON\n"
    "  --trace FILE        write a trace for Perfetto or chrome://tracing\n"
    "  --verify            without a share: do the picture on each device alone too\n"
    "                      and compare every bit\n"
    "  --hash              print a hash of the output's pixels\n"
    "  --progress WHICH    video: live (default, on a terminal) or json: a line each\n"
    "                      second on standard error\n"
    "  -v, --verbose       say more\n"
    "  -q, --quiet         say nothing but errors\n"
    "  -h, --help          this text\n"
    "  --version           versions\n";

#define LONG_OPTION(identifier, name, argument, groups) {name, argument, NULL, OPTION_##identifier},
#define SHORT_OPTION(letter, name, argument) {name, argument, NULL, letter},
const struct option option_table[] = {OPTION_TABLE(LONG_OPTION, SHORT_OPTION){NULL, 0, NULL, 0}};

#define OPTION_GROUPS(identifier, name, argument, groups) groups,
#define OPTION_NOTHING(...)
static const uint8_t option_groups[] = {OPTION_TABLE(OPTION_GROUPS, OPTION_NOTHING)};

uint64_t option_group_bits(unsigned groups)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof option_groups; i++)
        if (option_groups[i] & groups)
            bits |= UINT64_C(1) << i;

    return bits;
}

const char *option_first_name(uint64_t bits)
{
    const uint64_t first = bits & -bits;
    for (const struct option *option = option_table; option->name; option++)
        if (option->val > OPTION_FIRST && OPTION_BIT(option->val) == first)
            return option->name;

    return "";
}
