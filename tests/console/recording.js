// Makes a page of the console one that a browser shows from a file. `hrefs` has the file of each recorded address,
// `elsewhere` the file for all others; `shift` is added to each time, in milliseconds.
({ hrefs, elsewhere, shift }) => {
    const root = document.documentElement;
    const address = (element, name) => {
        const url = new URL(element.getAttribute(name), location.href);
        return url.origin === location.origin ? url.pathname + url.search : url.href;
    };
    const lead = (element, name) => {
        const [, fragment] = element.getAttribute(name).split("#");
        const own = address(element, name) === location.pathname + location.search && fragment !== undefined;
        const file = own ? "" : (hrefs[address(element, name)] ?? elsewhere);
        element.setAttribute(name, file + (fragment && file !== elsewhere ? `#${fragment}` : ""));
    };

    const SERVED = "script, style, link, noscript, template, meta[name=robots], input[type=hidden]";
    document.querySelectorAll(SERVED).forEach((element) => element.remove());
    document.querySelectorAll("a[href]").forEach((element) => lead(element, "href"));
    for (const form of document.querySelectorAll("form")) {
        form.setAttribute("action", elsewhere);
        form.setAttribute("method", "get");
    }
    for (const element of document.querySelectorAll("*")) {
        for (const { name } of [...element.attributes]) {
            if (/^(x-|@|:|hx-|on|data-hx|data-live|aria-controls|autofocus|nonce)/.test(name)) {
                element.removeAttribute(name);
            }
        }
        if (element.getAttribute("class") === "") {
            element.removeAttribute("class");
        }
    }

    const MOMENT = /\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?/g;
    const moved = (text) =>
        text.replace(MOMENT, (found) => {
            const time = new Date(`${found.replace(" ", "T")}Z`).getTime() + shift;
            const text = new Date(time).toISOString().slice(0, -1).replace("T", found[10]);
            return text.padEnd(found.length, "0").slice(0, found.length);
        });
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_COMMENT);
    const unwanted = [];
    while (texts.nextNode()) {
        const node = texts.currentNode;
        if (node.nodeType === Node.COMMENT_NODE) {
            unwanted.push(node);
        } else {
            node.data = moved(node.parentElement.closest("pre") ? node.data : node.data.replace(/\s+/g, " "));
        }
    }
    unwanted.forEach((node) => node.remove());
    for (const element of document.querySelectorAll("[datetime], [title], [value]")) {
        for (const name of ["datetime", "title", "value"]) {
            if (element.hasAttribute(name)) {
                element.setAttribute(name, moved(element.getAttribute(name)));
            }
        }
    }

    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = "style.css";
    // In a copy: the browser would ask the console for a style sheet of this page.
    const copy = root.cloneNode(true);
    copy.querySelector("head").append(sheet);
    return `<!DOCTYPE html>\n${copy.outerHTML}\n`;
};
