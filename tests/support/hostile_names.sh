#!/bin/sh
# File names that break programs and scripts which take them for code, for options or for patterns. Source this after the
# harness. In none of them may the command `id >pwned` run.
#
#   each_name COMMAND...    call COMMAND... NUMBER with each name in $name
#   harmless                check that no file `pwned` exists
#   only WHAT NAME...       check that the working directory has these files and no other
#   plain FILE...           check that files, or out and err, have nothing that controls a terminal
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154 # scripts use $name; $work is of the harness

# One name a line, as printf %b reads it: \0NNN is a byte. The last lines are not UTF-8.
hostile_names='
a b
 a\0040
a  b
it'"'"'s
'"'"'; id >pwned; '"'"'
"a"
"; id >pwned; "
a\012b
a\012
\012id >pwned
a\015b
a\011b
$(id >pwned)
"$(id >pwned)"
`id >pwned`
$HOME
${HOME}
$((1%0))
$(HOME)
$$(HOME)
!!
a;id >pwned
a|id >pwned
a&id >pwned
>pwned
<pwned
(id >pwned)
#a
a # b
*
?
[a]
{a,b}
~
~root
{}
{.}
{#}
{%}
{1}
{+}
{= system("id >pwned") =}
{=1 system("id >pwned") =}
::: a
%j
%x
%A
%%
%s
%n%n%n
%03d
%1$s
\\
a\\
\\n
\\x41
-
--
-h
--help
-o
-oProxyCommand=id >pwned
--output=pwned
@file
=a
a=b
a:b
a,b
file:a
http:a
concat:a
pipe:1
null:
data:a
subfile,,start,0,end,0,,:a
...
.hidden
a.
#EXTM3U
<b>a
&amp;
]]>
a\0033[31m
\0033]0;pwned\0007
\0001
\0177
\0302\0233
\0342\0200\0256a
\0303\0251\0344\0270\0255\0360\0237\0216\0254
\0377\0376
a\0303
\0300\0257
'

each_name() { # COMMAND...
    h_number=0
    while IFS= read -r h_line; do
        [ -n "$h_line" ] || continue
        h_number=$((h_number + 1))
        name=$(printf '%b.' "$h_line")
        name=${name%.}
        "$@" $h_number </dev/null
    done <<END
$hostile_names
END
}

harmless() {
    if [ -z "$(find "$work" -name 'pwned*')" ]; then pass; else fail 'code was run'; fi
}

only() { # WHAT NAME...
    h_about=$1
    shift
    find . -mindepth 1 -maxdepth 1 -print0 | sort -z >"$work/found"
    printf './%s\0' "$@" | sort -z >"$work/expected"
    same "$work/found" "$work/expected" "$h_about: $(tr '\0' ' ' <"$work/found" | cat -v)"
}

# plain FILE...: check that files, or out and err, have no byte that could control a terminal: only text in UTF-8, newlines
# and tabs.
plain() {
    for h_stream; do
        h_file "$h_stream"
        h_rest=$(LC_ALL=C.UTF-8 grep -acvxP '[\t -~\x{a0}-\x{10ffff}]*' -- "$h_path")
        equal "$h_rest" 0 "lines with control characters in $h_stream"
    done
}
