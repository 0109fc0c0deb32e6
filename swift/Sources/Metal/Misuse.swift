import MetalRuntime

/// Reports a misuse of the interface in the form of Apple's validation layer. Where a handler is set it returns, and
/// the caller then leaves the call without effect.
func misuse(_ object: String, _ selector: String, _ text: String) {
    mrt_misuse("-[\(object) \(selector)]: failed assertion `\(text)'")
}

/// The same, as a condition that never holds: `guard isOpen || refuse(…) else { return }`.
func refuse(_ object: String, _ selector: String, _ text: String) -> Bool {
    misuse(object, selector, text)
    return false
}
