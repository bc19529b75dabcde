// A part of a page that renews itself meets the sign-in page once the session is over: then the whole page goes there.
document.addEventListener("htmx:beforeSwap", (event) => {
    if (new URL(event.detail.xhr.responseURL).pathname.endsWith("/login/")) {
        event.detail.shouldSwap = false;
        window.location.reload();
    }
});

// The key / goes to the search box, unless something is being typed already.
document.addEventListener("keydown", (event) => {
    const box = document.getElementById("mq-search");
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "/" && box && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        box.focus();
        box.select();
    }
});
