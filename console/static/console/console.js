// Times in the browser's zone; the title keeps UTC.
const shortZone = (moment) =>
    new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(moment).find((part) => part.type === "timeZoneName").value;
const two = (number, digits = 2) => String(number).padStart(digits, "0");

const localTime = (element) => {
    const moment = new Date(element.getAttribute("datetime"));
    if (Number.isNaN(moment.getTime())) {
        return;
    }
    const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
    const minute = `${two(moment.getHours())}:${two(moment.getMinutes())}`;
    const exact = "hour" in element.dataset ? "" : `:${two(moment.getSeconds())}.${two(moment.getMilliseconds(), 3)}`;
    element.textContent = `${day} ${minute}${exact} ${shortZone(moment)}`;
};

const localTimes = (root) => root.querySelectorAll("time[data-clock], time[data-hour]").forEach(localTime);

// Makes a part of the page like a fresh one, in place: what did not change keeps its focus, selection and scroll.
const sameKind = (old, fresh) => old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && old.id === fresh.id;

const morphAttributes = (old, fresh) => {
    for (const { name } of [...old.attributes]) {
        if (!fresh.hasAttribute(name) && name !== "style" && !name.startsWith("data-hx")) {
            old.removeAttribute(name);
        }
    }
    for (const { name, value } of fresh.attributes) {
        if (old.getAttribute(name) !== value) {
            old.setAttribute(name, value);
        }
    }
};

const morphChart = (old, fresh) => {
    const chart = window.Chart && Chart.getChart(old);
    if (!chart || old.dataset.value === fresh.dataset.value) {
        return;
    }
    const data = JSON.parse(fresh.dataset.value);
    chart.data.labels = data.labels;
    data.datasets.forEach((dataset, number) => (chart.data.datasets[number].data = dataset.data));
    chart.update("none");
    old.dataset.value = fresh.dataset.value;
};

const morphChildren = (old, fresh) => {
    const keyed = new Map([...old.children].filter((child) => child.dataset.key).map((child) => [child.dataset.key, child]));
    let place = old.firstChild;
    for (const child of [...fresh.childNodes]) {
        const key = child.dataset && child.dataset.key;
        let match = key ? keyed.get(key) : place && !(place.dataset && place.dataset.key) && sameKind(place, child) ? place : null;
        if (!match) {
            old.insertBefore(child, place);
            continue;
        }
        if (match === place) {
            place = place.nextSibling;
        } else {
            old.insertBefore(match, place);
        }
        morph(match, child);
    }
    while (place) {
        const next = place.nextSibling;
        place.remove();
        place = next;
    }
};

const morph = (old, fresh) => {
    if (old.nodeType !== Node.ELEMENT_NODE) {
        if (old.data !== fresh.data) {
            old.data = fresh.data;
        }
    } else if (old.nodeName === "CANVAS") {
        morphChart(old, fresh);
    } else {
        morphAttributes(old, fresh);
        morphChildren(old, fresh);
    }
};

// When a part was last renewed. It is stale after three turns; a hidden page is not renewed, and not stale for that.
let renewedAt = Date.now();

const showStale = () => {
    const notice = document.getElementById("mq-stale");
    const live = document.querySelector("[data-live]");
    if (!notice || !live || document.visibilityState !== "visible") {
        return;
    }
    notice.hidden = Date.now() - renewedAt < 3000 * Number(live.dataset.live);
    const time = notice.querySelector("[data-renewed]");
    time.setAttribute("datetime", new Date(renewedAt).toISOString());
    localTime(time);
};

document.addEventListener("visibilitychange", () => {
    renewedAt = Date.now();
});

document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, xhr } = event.detail;
    // A part that renews itself meets the sign-in page once the session is over: then the whole page goes there.
    if (new URL(xhr.responseURL).pathname.endsWith("/login/")) {
        event.detail.shouldSwap = false;
        window.location.reload();
        return;
    }
    if (target.id !== "live") {
        return;
    }
    event.detail.shouldSwap = false;
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    const fresh = page.getElementById("live");
    if (xhr.status !== 200 || !fresh) {
        return;
    }
    const focused = document.activeElement;
    localTimes(fresh);
    morph(target, fresh);
    morph(document.getElementById("missing"), page.getElementById("missing"));
    if (focused && focused !== document.activeElement && document.contains(focused)) {
        focused.focus({ preventScroll: true });
    }
    renewedAt = Date.now();
    showStale();
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

document.addEventListener("DOMContentLoaded", () => {
    localTimes(document);
    // The words of Unfold's icon font are no names: a screen reader would read `delete_history` before the link's own.
    for (const icon of document.querySelectorAll("a .material-symbols-outlined, button .material-symbols-outlined")) {
        if (icon.closest("a, button").textContent.trim() !== icon.textContent.trim()) {
            icon.setAttribute("aria-hidden", "true");
        }
    }
    setInterval(showStale, 1000);
});

// A field that is to be typed into first: `autofocus` does nothing while Unfold hides the page, until Alpine has run.
document.addEventListener("alpine:initialized", () =>
    queueMicrotask(() => {
        const first = document.querySelector("[autofocus]");
        if (first && document.activeElement === document.body) {
            first.focus();
        }
    }),
);
