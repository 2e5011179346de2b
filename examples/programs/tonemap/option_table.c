/* SPDX-License-Identifier: Apache-2.0 */
#include "option_table.h"

#include <stddef.h>

const char option_help[] =
    "Usage: cox-tonemap INPUT... -o OUTPUT [options]\n"
    "       cox-tonemap analyse|steer|map|join ... -o OUTPUT [options]\n"
    "       cox-tonemap -o TABLE.cube [look]\n"
    "\n"
    "Tone-maps HDR video or HDR pictures to SDR, on all OpenCL devices together.\n"
    "\n"
    "  cox-tonemap movie.mkv -o movie.y4m\n"
    "  cox-tonemap movie.mkv -o still.png --frame 1000 --operator bt2390\n"
    "  cox-tonemap room.exr -o room.png --peak 4000 --devices gpu,cpu\n"
    "\n"
    "Input and output:\n"
    "  INPUT               video: y4m, raw frames, and containers if libavformat is built in; picture:\n"
    "                      OpenEXR, Radiance .hdr, PFM; HDR in PNG, AVIF, HEIC, JPEG XL, and JPEG with\n"
    "                      a gain map. Detected by content. - is standard input\n"
    "  -o, --output FILE   video: .mkv, .mp4, .y4m, .nv12, .p010, .png (stills) or null: (no output);\n"
    "                      picture: .png, .jpg (HDR). - is standard output. A folder: one file per input\n"
    "  --to KIND           video: mkv, mp4, y4m, nv12, p010, png or null (default: by the output's name)\n"
    "\n"
    "Finished files (.mkv, .mp4), with the input's sound and subtitles:\n"
    "  --encoder NAME[:KEY=VALUE,...]\n"
    "                      libavcodec encoder and its options (default libx264)\n"
    "  --crf N             encoder quality; lower is better and larger (default: the encoder's)\n"
    "  --preset NAME       encoder speed, ultrafast to veryslow (default: the encoder's)\n"
    "  --overwrite         replace an existing file\n"
    "\n"
    "Look:\n"
    "  --operator NAME     hable (default), reinhard, mobius, bt2390, bt2446a, bt2446c, spline, aces,\n"
    "                      linear, clip, local, hdr10plus (video only: the curves in the film) or\n"
    "                      exposure (pictures only)\n"
    "  --peak NITS|auto    brightest luminance that keeps detail, in cd/m2; auto (default): measured, for\n"
    "                      a picture or from scene to scene\n"
    "  --exposure STOPS    brighten (> 0) or darken (< 0); added to what --peak auto finds (default 0)\n"
    "  --desat STRENGTH    how much colours brighter than white fade to white, 0 to 1 (default 0.75)\n"
    "  --detail FACTOR     contrast of fine detail with --operator local, 0.25 to 4 (default 1)\n"
    "  --depth BITS        PNG: 8 or 16; y4m, mkv, mp4: 8 or 10 (default 8)\n"
    "  --quality N         JPEG: quality, 1 to 100 (default 90)\n"
    "  --alpha             pictures: keep the alpha channel (default: blend with black)\n"
    "  --layer NAME        pictures: a layer of OpenEXR; default: the unnamed one, Combined or the first\n"
    "  --sdr-white NITS    video: luminance that becomes SDR white, in cd/m2 (default 203)\n"
    "  --hlg-peak NITS     video: peak of the display that HLG is shown for, in cd/m2 (default 1000)\n"
    "  --hdr NITS          write HDR (PQ, BT.2020, 10 bits or PNG) for a display of that peak, in cd/m2;\n"
    "                      sets --operator bt2390 and --desat 0 unless they are given\n"
    "  --wide              write BT.2020 instead of BT.709\n"
    "  --full-range        video: write codes of the full range (default: limited)\n"
    "  --dither WHICH      video: none or ordered (default: ordered if the output has fewer bits)\n"
    "  --gamut WHICH       video: compress[:KNEE], hue[:KNEE] or clip. compress (default but for BT.709)\n"
    "                      moves colours outside SDR towards grey; hue does it without a change of hue\n"
    "                      and takes longer; clip clips channels\n"
    "  --scale 1/2|WxH     video: half the width and height, or another size. Wx or xH keeps the shape\n"
    "  --lut TABLE.cube    video: map with this 3-D look-up table, from the input's signal to the\n"
    "                      output's, instead of with the options above that set the look\n"
    "  --points N          -o TABLE.cube without an input writes the look as such a table, for --peak\n"
    "                      1000 by default, with N points on each side, 2 to 129 (default 33)\n"
    "\n"
    "Input video, to override the stream or to describe raw frames:\n"
    "  --transfer CURVE    pq (default for more than 8 bits), hlg, linear, sdr or auto. sdr passes\n"
    "                      unchanged; auto follows the stream, also one that begins with SDR\n"
    "  --primaries WHICH   bt2020 (default), bt709, p3-d65, p3-dci, bt601-525 or bt601-625\n"
    "  --range WHICH       limited (default) or full\n"
    "  --size WxH          raw frames: their size\n"
    "  --format NAME       raw frames: yuv420p10, p010, nv12, rgba16f, ...; default: by the file's name\n"
    "  --rate FPS          frames per second, such as 25, 23.976 or 24000/1001\n"
    "  --stream N          containers: the video stream, as ffprobe numbers it (default: the best one)\n"
    "  --hwdec NAME[:DEV]  containers: decode with a device: none (default), auto, or cuda, vaapi, vulkan\n"
    "                      and others that --list-hw lists. Software decodes what it refuses\n"
    "  --strict            write no film if frames may be missing or damaged; default: write what can be\n"
    "                      decoded, and end with status 1 if damage is certain\n"
    "\n"
    "Frames of the video:\n"
    "  --start N           first frame, counted from 0 (default 0)\n"
    "  --frames N          number of frames (default: all)\n"
    "  --frame LIST        PNG: frame numbers or times, such as 10,1:30,2:00:05.5; with several the\n"
    "                      output's name has a %d for their place in the list, as in still-%d.png\n"
    "  --sheet N|CxR       PNG: N frames, or C columns and R rows of them, evenly spread over the film\n"
    "  --lookahead 0|1     with --peak auto: 1 (default for files) measures each frame before it is\n"
    "                      mapped; 0 (default for pipes) uses the frames before it\n"
    "  --trust-metadata    with --peak auto: no light is above the peak in the stream's metadata\n"
    "\n"
    "A film in pieces, on several machines (docs/guide/pieces.md):\n"
    "  analyse FILM -o PART                        measure the light of a part\n"
    "  steer PART... -o SCENE                      find the light of each frame, from all parts\n"
    "  map FILM --scene SCENE -o PIECE.mkv|.y4m    map a piece\n"
    "  join PIECE... -o OUTPUT                     join the pieces\n"
    "  --range FIRST:END   analyse, map: frames FIRST to END - 1\n"
    "  --share I/N         analyse, map: part I of N equal parts, counted from 1\n"
    "  --scene FILE        map, join: the file that steer wrote; sets each frame's light and the look\n"
    "  --source FILE       join: take sound, subtitles and metadata from this file\n"
    "\n"
    "Devices and scheduling:\n"
    "  --devices LIST      cpu, gpu, all (default), PLATFORM.DEVICE or part of a name, comma-separated;\n"
    "                      :NxC makes N sub-devices of C compute units; =shared, =mapped or =staged sets\n"
    "                      the memory mode\n"
    "  --policy NAME       how rows are shared among devices (default adaptive); --policy help lists all\n"
    "  --split A,B,...     fixed share of the rows for each device; the shares sum to 1\n"
    "  --reserve WHICH     reserve a core for feeding devices: auto (default), on, off or a CPU number\n"
    "  --arithmetic WHICH  fma, muladd or auto (default). auto uses fma if it is fast on all devices;\n"
    "                      machines give the same bits only with the same arithmetic\n"
    "  --in-flight N       frames in progress at once, 1 to 16 (default 2)\n"
    "  --deadline MS       count frames that take longer than MS milliseconds on the devices\n"
    "  --max-memory GIB    most memory for the frames of an input (default: 0.625, or 100 times its file)\n"
    "  --no-cache          do not use or keep compiled kernels and device profiles\n"
    "  --check-kernels     test the kernels for mistakes before each frame; slow\n"
    "  --verify SHARE      share of bands to repeat on a second device and compare, 0 to 1 (default 0)\n"
    "\n"
    "Measurements and messages:\n"
    "  --repeat N          pictures: map the picture N times (default 1)\n"
    "  --stats FILE        write the cost of each frame, as JSON\n"
    "  --trace FILE        write a trace for Perfetto or chrome://tracing\n"
    "  --judge REFERENCE   compare the frames with those of a video, or the picture or still with a PNG;\n"
    "                      -o is optional then\n"
    "  --verify            without SHARE, pictures: compare with each device alone, bit for bit\n"
    "  --hash              print a hash of the output's pixels\n"
    "  --progress WHICH    video: live (default on a terminal) or json (a line per second on standard\n"
    "                      error)\n"
    "  -v, --verbose       print more\n"
    "  -q, --quiet         print errors only\n"
    "  --list-hw           list the devices that decode and encode video\n"
    "  -h, --help          print this text\n"
    "  --version           print the version\n";

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
