import COrchard
import Foundation

/// Injected failures, for tests of recovery from real ones.
final class Faults: @unchecked Sendable {
    enum Kind: String, CaseIterable {
        case allocate
        case library
        case pipeline
        case commandBuffer = "command-buffer"
    }

    private struct Plan {
        var skip: UInt32
        var count: UInt32
        let code: Int32
    }

    private let lock = NSLock()
    private var plans: [Kind: Plan] = [:]

    func inject(_ name: String, skip: UInt32, count: UInt32, code: Int32) throws {
        guard let kind = Kind(rawValue: name) else {
            let known = Kind.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
            throw OrchardError.invalid("There is no fault '\(name)'; expected one of \(known).")
        }
        lock.withLock { plans[kind] = count == 0 ? nil : Plan(skip: skip, count: count, code: code) }
    }

    /// Returns the injected code if this occurrence must fail.
    func take(_ kind: Kind) -> Int32? {
        lock.withLock {
            guard var plan = plans[kind] else { return nil }
            let fails = plan.skip == 0
            if fails { plan.count -= 1 } else { plan.skip -= 1 }
            plans[kind] = plan.count == 0 ? nil : plan
            return fails ? plan.code : nil
        }
    }
}
