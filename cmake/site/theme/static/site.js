/* The menu of narrow windows, the choice of light or dark, and the keyboard for what scrolls.
 * SPDX-License-Identifier: Apache-2.0 */
"use strict";
const page = document.documentElement;
page.classList.add("js");

function stored(theme) {
    try {
        if (theme)
            localStorage.setItem("theme", theme);
        return localStorage.getItem("theme");
    } catch (_) { /* pages that are files may have no storage */
        return theme;
    }
}

function dark() {
    return page.dataset.theme ? page.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

if (stored())
    page.dataset.theme = stored();

function markScrolling() {
    for (const box of document.querySelectorAll(".table, article pre")) {
        if (box.scrollWidth > box.clientWidth)
            box.tabIndex = 0;
        else
            box.removeAttribute("tabindex");
    }
}

addEventListener("resize", markScrolling);
addEventListener("load", markScrolling);
addEventListener("DOMContentLoaded", function () {
    const theme = document.getElementById("theme"), menu = document.getElementById("menu"), pages = document.getElementById("pages");
    const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
    name();
    theme.addEventListener("click", function () {
        page.dataset.theme = dark() ? "light" : "dark";
        stored(page.dataset.theme);
        name();
    });
    menu.addEventListener("click", function () {
        menu.setAttribute("aria-expanded", pages.classList.toggle("open"));
    });
    const current = pages.querySelector("a.current");
    if (current)
        pages.scrollTop = current.offsetTop - pages.clientHeight / 3;
});
