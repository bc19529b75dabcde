// Swagger UI is dark below `html.dark-mode`. The choice is the console's, which Unfold keeps; without one, the system's.
const systemDark = window.matchMedia("(prefers-color-scheme: dark)");

const followConsole = () => {
    const chosen = localStorage.getItem("_x_adminTheme") || "";
    const dark = chosen.includes("dark") || (!chosen.includes("light") && systemDark.matches);
    document.documentElement.classList.toggle("dark-mode", dark);
};

followConsole();
systemDark.addEventListener("change", followConsole);
window.addEventListener("storage", followConsole);
