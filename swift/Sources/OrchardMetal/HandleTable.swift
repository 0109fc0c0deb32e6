import COrchard
import Foundation

enum HandleKind: UInt64 {
    case context = 1
    case buffer = 2
    case library = 3
    case pipeline = 4

    var name: String { ["context", "buffer", "library", "pipeline"][Int(rawValue) - 1] }
}

/// The object behind a handle.
class HandleObject: @unchecked Sendable {
    class var kind: HandleKind { fatalError("a subclass says its kind") }
    var context: Context { fatalError("a subclass says its context") }
}

/// All handles of the process.
///
/// A handle consists of a kind (4 bits), a generation (24 bits) and a slot (24 bits), so it is below 2^53. When a
/// handle ends, the generation of its slot is incremented, and every copy of the handle becomes stale. A slot that has
/// used all generations is retired. Free slots are reused in the order in which they became free, so that the reason
/// why a handle ended stays known for a long time.
final class HandleTable: @unchecked Sendable {
    static let shared = HandleTable()

    private struct Slot {
        var object: HandleObject?
        var generation: UInt64 = 1
        var owners: UInt32 = 0
        var endedByClose = false
    }

    private static let fieldBits: UInt64 = 24
    private static let fieldMask: UInt64 = (1 << fieldBits) - 1

    private let lock = NSLock()
    private var slots: [Slot] = []
    private var free: [Int] = []
    private var freeHead = 0
    private let lastGeneration: UInt64

    /// Tests set `lastGeneration` to a small number to see slots retire.
    init(lastGeneration: UInt64 = HandleTable.fieldMask) {
        self.lastGeneration = min(lastGeneration, HandleTable.fieldMask)
    }

    func insert(_ object: HandleObject) throws -> UInt64 {
        try lock.withLock {
            let index = try takeSlot()
            slots[index].object = object
            slots[index].owners = 1
            slots[index].endedByClose = false
            return type(of: object).kind.rawValue << (2 * Self.fieldBits) | slots[index].generation << Self.fieldBits
                | UInt64(index)
        }
    }

    func lookup<Object: HandleObject>(_ handle: UInt64, as type: Object.Type) throws -> Object {
        let object = try lock.withLock { try slots[find(handle)].object! }
        guard Swift.type(of: object).kind == type.kind else {
            throw OrchardError(
                ORCHARD_WRONG_KIND,
                "Expected handle \(hexadecimal(handle)) to be a \(type.kind.name), got a "
                    + "\(Swift.type(of: object).kind.name)."
            )
        }
        return unsafeDowncast(object, to: type)
    }

    func retain(_ handle: UInt64) throws {
        try lock.withLock {
            let index = try findShared(handle)
            guard slots[index].owners < .max else {
                throw OrchardError.limit("Handle \(hexadecimal(handle)) has too many owners.")
            }
            slots[index].owners += 1
        }
    }

    /// Returns the object if this was its last reference.
    func release(_ handle: UInt64) throws -> HandleObject? {
        try lock.withLock {
            let index = try findShared(handle)
            slots[index].owners -= 1
            return slots[index].owners == 0 ? end(index, byClose: false) : nil
        }
    }

    func owners(_ handle: UInt64) throws -> UInt32 { try lock.withLock { try slots[find(handle)].owners } }

    /// Ends every handle of a context, including the context's handle, and returns their objects.
    func close(_ context: Context) -> [HandleObject] {
        lock.withLock {
            slots.indices.compactMap { index in
                slots[index].object?.context === context ? end(index, byClose: true) : nil
            }
        }
    }

    /// Returns the context to which a handle belongs, if the handle is alive.
    func context(of handle: UInt64) -> Context? {
        lock.withLock { (try? find(handle)).flatMap { slots[$0].object?.context } }
    }

    var liveCount: Int { lock.withLock { slots.reduce(0) { $0 + ($1.object == nil ? 0 : 1) } } }

    // MARK: Under the lock

    private func takeSlot() throws -> Int {
        if freeHead < free.count {
            defer { freeHead += 1; dropTakenSlots() }
            return free[freeHead]
        }
        guard slots.count <= Self.fieldMask else { throw OrchardError.limit("All \(slots.count) handles are in use.") }
        slots.append(Slot())
        return slots.count - 1
    }

    private func dropTakenSlots() {
        guard freeHead >= 1024, freeHead * 2 >= free.count else { return }
        free.removeFirst(freeHead)
        freeHead = 0
    }

    private func find(_ handle: UInt64) throws -> Int {
        let index = Int(handle & Self.fieldMask)
        let generation = handle >> Self.fieldBits & Self.fieldMask
        guard index < slots.count, let kind = HandleKind(rawValue: handle >> (2 * Self.fieldBits)) else {
            throw OrchardError(ORCHARD_STALE_HANDLE, "\(hexadecimal(handle)) is not a handle.")
        }
        let slot = slots[index]
        if slot.generation == generation, let object = slot.object, Swift.type(of: object).kind == kind { return index }
        if slot.endedByClose, slot.generation == generation + 1 {
            throw OrchardError(ORCHARD_CLOSED, "The context of \(kind.name) \(hexadecimal(handle)) was closed.")
        }
        throw OrchardError(
            ORCHARD_STALE_HANDLE, "\(kind.name.capitalized) \(hexadecimal(handle)) was released, or never issued.")
    }

    private func findShared(_ handle: UInt64) throws -> Int {
        let index = try find(handle)
        guard !(slots[index].object is Context) else {
            throw OrchardError(
                ORCHARD_WRONG_KIND,
                "Handle \(hexadecimal(handle)) is a context, which has one owner: use orchard_close.")
        }
        return index
    }

    private func end(_ index: Int, byClose: Bool) -> HandleObject? {
        let object = slots[index].object
        slots[index].object = nil
        slots[index].owners = 0
        slots[index].endedByClose = byClose
        slots[index].generation += 1
        if slots[index].generation <= lastGeneration { free.append(index) }
        return object
    }
}

func hexadecimal(_ value: UInt64) -> String { "0x" + String(value, radix: 16) }
