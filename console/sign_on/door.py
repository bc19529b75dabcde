"""The additions of the sign-on to the parts of the broker."""

from store.process.doors import Adds, To

ADDS: Adds = {
    To.ENTRANCES: "views.ENTRANCES",
    To.SIGN_INS: "views.SIGN_INS",
}
