// A part of a page that renews itself meets the sign-in page once the session is over: then the whole page goes there.
document.addEventListener("htmx:beforeSwap", (event) => {
    if (new URL(event.detail.xhr.responseURL).pathname.endsWith("/login/")) {
        event.detail.shouldSwap = false;
        window.location.reload();
    }
});
