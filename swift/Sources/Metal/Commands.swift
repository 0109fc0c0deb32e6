import MetalRuntime

/// A command as it was encoded, to be run by a queue.
protocol Command {
    /// The encoder that recorded it, for the report of a failure.
    var encoder: EncoderRecord? { get }
    /// The buffers that it uses, if they still exist.
    var buffers: [SoftwareBuffer] { get }
    /// A buffer that it uses and whose contents were discarded.
    var purged: SoftwareBuffer? { get }
    /// Whether the command involves the host, so that the GPU's earlier work must have ended.
    var isSeenByHost: Bool { get }
    /// Runs the command; returns nil on success.
    func run() -> CommandFailure?
}

extension Command {
    var encoder: EncoderRecord? { nil }
    var buffers: [SoftwareBuffer] { [] }
    var purged: SoftwareBuffer? { buffers.first(where: \.isPurged) }
    var isSeenByHost: Bool { false }
}

/// A buffer of a command. In a command buffer with unretained references, the program must keep the buffer alive.
struct BufferReference {
    /// A separate object, because counting references of an object becomes slower with its first weak reference.
    private final class Unretained {
        private(set) weak var buffer: SoftwareBuffer?

        init(_ buffer: SoftwareBuffer) { self.buffer = buffer }
    }

    private let retained: SoftwareBuffer?
    private let unretained: Unretained?

    init(_ buffer: SoftwareBuffer, retained isRetained: Bool) {
        retained = isRetained ? buffer : nil
        unretained = isRetained ? nil : Unretained(buffer)
    }

    var buffer: SoftwareBuffer? { retained ?? unretained?.buffer }

    /// Returns the buffer for execution. If it was freed in the meantime, reports a misuse.
    func resolve() -> SoftwareBuffer? {
        if let buffer { return buffer }
        misuse(
            "MTLDebugCommandBuffer", "commit",
            """
            Command buffer with unretained references references deallocated object: keep the buffer until the command \
            buffer has completed.
            """)
        return nil
    }
}

struct WaitCommand: Command {
    let event: SoftwareEvent
    let value: UInt64
    let isSeenByHost = true

    func run() -> CommandFailure? {
        event.wait(for: value)
        return nil
    }
}

struct SignalCommand: Command {
    let event: SoftwareEvent
    let value: UInt64
    let isSeenByHost = true

    func signal() { event.signal(value) }

    func run() -> CommandFailure? {
        signal()
        return nil
    }
}

/// Replaces an invalid dispatch. Other commands still run, and the command buffer ends with an error.
struct RefusedCommand: Command {
    let encoder: EncoderRecord?
    let selector: String

    func run() -> CommandFailure? {
        CommandFailure(.invalidResource, "\(selector) was refused: the sentence of its misuse says why")
    }
}

struct CopyCommand: Command {
    let encoder: EncoderRecord?
    let source: BufferReference
    let sourceOffset: Int
    let destination: BufferReference
    let destinationOffset: Int
    let size: Int

    var buffers: [SoftwareBuffer] { [source.buffer, destination.buffer].compactMap { $0 } }

    func run() -> CommandFailure? {
        guard let source = source.resolve(), let destination = destination.resolve() else { return .deallocated }
        let from = source.memory.address + sourceOffset, to = destination.memory.address + destinationOffset
        return destination.memory.device.copy(to: to, from: from, count: size)
    }
}

struct FillCommand: Command {
    let encoder: EncoderRecord?
    let buffer: BufferReference
    let range: Range<Int>
    let value: UInt8

    var buffers: [SoftwareBuffer] { [buffer.buffer].compactMap { $0 } }

    func run() -> CommandFailure? {
        guard let buffer = buffer.resolve() else { return .deallocated }
        let start = buffer.memory.address + range.lowerBound
        return buffer.memory.device.fill(start, value: value, count: range.count)
    }
}
