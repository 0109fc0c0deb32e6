import COrchard
import Foundation
import Metal

/// A buffer with a handle. A hint may move its memory to another storage mode.
final class Buffer: HandleObject, @unchecked Sendable {
    override class var kind: HandleKind { .buffer }
    override var context: Context { owner }

    let owner: Context
    let length: UInt64
    let label: String?
    var allocation: Allocation

    init(_ owner: Context, length: UInt64, label: String?, allocation: Allocation) {
        self.owner = owner
        self.length = length
        self.label = label
        self.allocation = allocation
    }

    /// The address of the bytes for the CPU; nil if the storage is private.
    var contents: UnsafeMutableRawPointer? { allocation.storage == .shared ? allocation.buffer.contents() : nil }

    /// Returns a range of bytes, or throws if it is not within the buffer.
    func range(_ offset: UInt64, _ length: UInt64, _ what: @autoclosure () -> String) throws -> Range<Int> {
        let (end, overflow) = offset.addingReportingOverflow(length)
        guard !overflow, end <= self.length else {
            throw OrchardError.invalid(
                "\(what()): \(length) bytes at offset \(offset) are not inside \(name), which has \(self.length).")
        }
        return Int(offset)..<Int(end)
    }

    func use(_ range: Range<Int>, writes: Bool, updates: Bool = false) -> Use {
        Use(allocation: allocation, range: range, writes: writes, updates: updates)
    }

    var name: String { label.map { "buffer '\($0)'" } ?? "the buffer" }
}

// MARK: Making and releasing

extension Context {
    func makeBuffer(_ length: UInt64, storage: UInt32, zeroed: Bool, label: String?) throws -> Buffer {
        let buffer = try locked {
            try Buffer(self, length: length, label: label, allocation: allocate(length, resolve(storage), label: label))
        }
        guard zeroed else { return buffer }
        do {
            // The bytes after the buffer in its size class are unused, and a blit requires multiples of 4.
            let bytes = min(Transfer.roundedUp(Int(length)), buffer.allocation.bytes)
            _ = try fill(buffer, 0..<bytes, byte: 0)
            return buffer
        } catch {
            discard(buffer)
            throw error
        }
    }

    /// Called when the last handle is released. A closed context has no pool any more, and its memory is already freed.
    func discard(_ buffer: Buffer) { try? locked { pool.release(buffer.allocation) } }
}
