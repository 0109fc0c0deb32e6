import COrchard
import Foundation
import Metal

/// The failure of a call: a status, and a message of one or more sentences.
struct OrchardError: Error {
    let status: orchard_status
    let message: String

    init(_ status: orchard_status, _ message: String) {
        self.status = status
        self.message = message
    }

    static func invalid(_ message: String) -> OrchardError { OrchardError(ORCHARD_INVALID_ARGUMENT, message) }
    static func limit(_ message: String) -> OrchardError { OrchardError(ORCHARD_LIMIT_EXCEEDED, message) }
}

/// The message of each thread's last failure. It is stored in the thread's dictionary, so it is freed with the thread.
enum LastError {
    private static let key = "orchard.last-error"

    static var message: String {
        get { Thread.current.threadDictionary[key] as? String ?? "" }
        set { Thread.current.threadDictionary[key] = newValue }
    }
}

/// Runs the body of an entry point. Errors become a status, and objects that Metal autoreleases are freed: a host
/// without a run loop would keep them forever. `handle` identifies the context whose errors are counted.
func entry(_ handle: UInt64 = 0, _ body: () throws -> Void) -> Int32 {
    autoreleasepool {
        do {
            try body()
            return Int32(bitPattern: ORCHARD_OK.rawValue)
        } catch {
            let failure = error as? OrchardError ?? OrchardError(ORCHARD_INTERNAL, String(describing: error))
            LastError.message = failure.message
            HandleTable.shared.context(of: handle)?.countError()
            return Int32(bitPattern: failure.status.rawValue)
        }
    }
}

extension Error {
    /// Apple's reason, with the domain and the code, which Apple's documentation lists.
    var reason: String {
        let error = self as NSError
        return "\(error.localizedDescription) (\(error.domain) \(error.code))"
    }
}
