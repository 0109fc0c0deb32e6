import MetalRuntime

/// An NSError that prints its description as Apple's does; Foundation on Linux would print "(null)".
final class DescribedError: NSError, @unchecked Sendable {
    override var description: String { "Error Domain=\(domain) Code=\(code) \"\(localizedDescription)\"" }
}

extension _BridgedStoredNSError where Code: RawRepresentable, Code.RawValue: BinaryInteger {
    /// The error with `message` as its localized description.
    init(_ code: Code, _ message: String, _ more: [String: Any] = [:]) {
        let information = more.merging([NSLocalizedDescriptionKey: message]) { mine, _ in mine }
        self.init(
            _nsError: DescribedError(domain: Self._nsErrorDomain, code: Int(code.rawValue), userInfo: information))
    }
}

/// Takes ownership of a message from the runtime.
func takeMessage(_ message: UnsafeMutablePointer<CChar>?) -> String? {
    guard let message else { return nil }
    defer { mrt_string_free(message) }
    return String(cString: message)
}

/// Returns whether a test injected a failure into this occurrence of `kind`.
func takeFault(_ kind: String) -> Bool {
    var code: Int32 = 0
    return mrt_fault_take(kind, &code)
}

func setting(_ name: String) -> Int? {
    takeMessage(mrt_setting_get(name)).flatMap { Int($0) }
}

/// Prints a sentence about a difference from Apple's device to standard error, once.
func note(_ sentence: String) {
    guard notes.withLock({ $0.insert(sentence).inserted }) else { return }
    FileHandle.standardError.write(Data("orchard: \(sentence)\n".utf8))
}

private let notes = Guarded<Set<String>>([])

/// A value protected by a lock.
final class Guarded<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try lock.withLock { try body(&value) }
    }
}
