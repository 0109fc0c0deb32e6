// The unfair locks: the one whose memory the program provides, and the one that owns its memory.
import Foundation

@_silgen_name("orchard_unfair_try") private func unfairTry(_ lock: UnsafeMutablePointer<UInt32>) -> Bool
@_silgen_name("orchard_unfair_lock") private func unfairLock(_ lock: UnsafeMutablePointer<UInt32>)
@_silgen_name("orchard_unfair_unlock") private func unfairUnlock(_ lock: UnsafeMutablePointer<UInt32>)

public struct os_unfair_lock_s {
    public var _os_unfair_lock_opaque: UInt32

    public init() { _os_unfair_lock_opaque = 0 }
    public init(_os_unfair_lock_opaque: UInt32) { self._os_unfair_lock_opaque = _os_unfair_lock_opaque }
}

public typealias os_unfair_lock = os_unfair_lock_s
public typealias os_unfair_lock_t = UnsafeMutablePointer<os_unfair_lock>

private func word(_ lock: os_unfair_lock_t) -> UnsafeMutablePointer<UInt32> {
    UnsafeMutableRawPointer(lock).assumingMemoryBound(to: UInt32.self)
}

public func os_unfair_lock_lock(_ lock: os_unfair_lock_t) { unfairLock(word(lock)) }
public func os_unfair_lock_trylock(_ lock: os_unfair_lock_t) -> Bool { unfairTry(word(lock)) }
public func os_unfair_lock_unlock(_ lock: os_unfair_lock_t) { unfairUnlock(word(lock)) }

/// Ends the program if the lock is open. Which thread holds it is not recorded.
public func os_unfair_lock_assert_owner(_ lock: UnsafePointer<os_unfair_lock>) {
    precondition(lock.pointee._os_unfair_lock_opaque != 0, "os_unfair_lock_assert_owner: the lock is open")
}

/// A lock around a value.
public struct OSAllocatedUnfairLock<State>: @unchecked Sendable {
    private final class Box: @unchecked Sendable {
        let lock = NSLock()
        var state: State

        init(_ state: State) { self.state = state }
    }

    private let box: Box

    public init(initialState: State) { box = Box(initialState) }
    public init(uncheckedState: State) { box = Box(uncheckedState) }

    public func withLock<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        try box.lock.withLock { try body(&box.state) }
    }

    public func withLockUnchecked<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        try withLock(body)
    }

    /// Returns nil if the lock is held.
    public func withLockIfAvailable<Result>(_ body: (inout State) throws -> Result) rethrows -> Result? {
        guard box.lock.try() else { return nil }
        defer { box.lock.unlock() }
        return try body(&box.state)
    }

    public func withLockIfAvailableUnchecked<Result>(
        _ body: (inout State) throws -> Result
    ) rethrows -> Result? { try withLockIfAvailable(body) }
}

extension OSAllocatedUnfairLock where State == Void {
    public init() { self.init(initialState: ()) }

    public func withLock<Result>(_ body: () throws -> Result) rethrows -> Result { try withLock { _ in try body() } }
    public func withLockUnchecked<Result>(_ body: () throws -> Result) rethrows -> Result {
        try withLock { _ in try body() }
    }

    public func lock() { box.lock.lock() }
    public func unlock() { box.lock.unlock() }
    public func lockIfAvailable() -> Bool { box.lock.try() }
}
