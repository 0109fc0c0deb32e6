import MetalRuntime

/// Reports a misuse of the interface in the form of Apple's validation layer. If a handler is set, it returns, and the
/// caller must ignore the call.
func misuse(_ object: String, _ selector: String, _ text: String) {
    mrt_misuse("-[\(object) \(selector)]: failed assertion `\(text)'")
}

/// Reports a misuse as an expression that is always false: `guard isOpen || refuse(…) else { return }`.
func refuse(_ object: String, _ selector: String, _ text: String) -> Bool {
    misuse(object, selector, text)
    return false
}
