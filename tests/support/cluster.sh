#!/bin/sh
# Shared by the tests of examples/programs/cluster, which source this instead of the harness. It makes two files:
#   $film has 300 frames, several scenes, and sound.
#   $one is the output of one run over it.
#
#   frames_of FILE          a hash of the file's frames
#   whole FILE              check that the file has the same frames as $one, and sound
#   mapped FOLDER           the number of pieces in that folder that are newer than the last `remember`
#   free_ports N            N free ports, chosen by the kernel
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need ffmpeg
need_device
need_libavformat
film=$work/film.mkv
one=$work/one.mkv
light='0.25+0.7*mod(floor(N/77)*5,13)/13'
ffmpeg -v error -f lavfi -i "color=size=64x48:rate=24:duration=13,format=yuv420p10le,geq=lum='64+clip(($light),0,1)*mod(X*7+Y*5+N,97)*8.6':cb=512:cr=512" \
    -f lavfi -i sine=440:duration=12.5 -frames:v 300 -c:v libx264 -preset ultrafast -qp 0 -g 40 -bf 2 -color_trc smpte2084 -c:a aac \
    "$film" 2>"$work/err" || skip "this ffmpeg cannot make the film"
run 0 'one run' "$film" -o "$one" --encoder ffv1 -q

frames_of() { ffmpeg -v error -i "$1" -map 0:v -f md5 -; }
frames=$(frames_of "$one")
whole() {
    equal "$(frames_of "$1")" "$frames" 'the frames'
    equal "$(ffprobe -v error -show_entries stream=codec_name -of csv=p=0 "$1" | tr '\n' ' ')" 'ffv1 aac ' 'the streams'
}
remember() {
    touch "$work/before"
    sleep 0.1 # longer than the resolution of file times
}
mapped() { find "$1" -name 'piece-*' -newer "$work/before" | wc -l; }
free_ports() {
    python3 -c 'import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))' "$1"
}
