// Removes what the page does not show, and gives the rules of its style sheets that some element of it could match: each
// has its place in its sheet or group, its text, and the rules within it if it is a group.
({ shift }) => {
    // A chart becomes its picture, with the recorded times.
    const clock = (label) => new Date(new Date(`2026-01-15T${label}Z`).getTime() + shift).toISOString().slice(11, 16);
    for (const canvas of document.querySelectorAll("canvas")) {
        const chart = window.Chart?.getChart(canvas);
        if (chart === undefined) {
            continue;
        }
        chart.data.labels = chart.data.labels.map((label) => (/^\d\d:\d\d$/.test(label) ? clock(label) : label));
        chart.update("none");
        chart.draw();
        const picture = document.createElement("img");
        picture.src = canvas.toDataURL("image/webp", 0.9);
        picture.alt = canvas.getAttribute("aria-label") ?? "";
        picture.width = canvas.clientWidth;
        canvas.replaceWith(picture);
    }
    // What only a script could show again, and the font of icons, which is larger than all pages.
    for (const element of document.body.querySelectorAll("*:not(style, link)")) {
        const isHidden = getComputedStyle(element).display === "none" && !element.closest("details, svg");
        if (element.isConnected && (isHidden || element.matches("script, img:not([src^=data]), .material-symbols-outlined"))) {
            element.remove();
        }
    }
    const STATES = /::?(?:hover|focus|focus-visible|focus-within|active|visited|disabled|checked|open|before|after|marker|placeholder|backdrop|selection|-[\w-]+|file-selector-button)\b(?:\([^)]*\))?/g;
    const matches = (selectors) => {
        try {
            return document.querySelector(selectors.replace(STATES, "") || "*") !== null;
        } catch {
            return true;
        }
    };
    const kept = (rules) =>
        [...rules].flatMap((rule, place) => {
            if (rule instanceof CSSStyleRule) {
                return matches(rule.selectorText) ? [[place, rule.cssText, null]] : [];
            }
            if (rule instanceof CSSFontFaceRule || rule instanceof CSSKeyframesRule) {
                return [];
            }
            if (rule.cssRules === undefined) {
                return [[place, rule.cssText, null]];
            }
            const within = kept(rule.cssRules);
            const head = rule.cssText.slice(0, rule.cssText.indexOf("{")).trim();
            return within.length ? [[place, head, within]] : [];
        });
    return [...document.styleSheets].map((sheet) => kept(sheet.cssRules));
};
