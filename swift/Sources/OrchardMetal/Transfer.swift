import COrchard
import Foundation
import Metal

/// Fills, copies, reads and writes of buffers.
///
/// On macOS, blits require offsets and sizes that are multiples of 4 bytes; other transfers use a kernel for single
/// bytes.
enum Transfer {
    static let granularity = 4

    static func roundedUp(_ value: Int) -> Int { (value + granularity - 1) / granularity * granularity }

    static func isAligned(_ values: Int...) -> Bool { values.allSatisfy { $0 % granularity == 0 } }
}

extension Context {
    func fill(_ buffer: Buffer, _ range: Range<Int>, byte: UInt8) throws -> UInt64 {
        let kernel = try byteKernel(unless: Transfer.isAligned(range.lowerBound, range.count))
        return try locked {
            guard !range.isEmpty else { return stream.lastCommitted }
            let use = buffer.use(range, writes: true)
            guard let kernel else {
                return try stream.blit([use]) { $0.fill(buffer: use.allocation.buffer, range: range, value: byte) }
            }
            let copy = StridedCopy(shape: [UInt64(range.count)], source: [0], destination: [1])
            return try stream.compute([use], work: copy.work) { encoder in
                kernel.encodeCopy(copy, to: use, on: encoder) { encoder in
                    withUnsafeBytes(of: byte) { encoder.setBytes($0.baseAddress!, length: 1, index: 0) }
                }
            }
        }
    }

    func copy(_ source: Buffer, _ from: Range<Int>, _ destination: Buffer, _ to: Range<Int>) throws -> UInt64 {
        let kernel = try byteKernel(unless: Transfer.isAligned(from.lowerBound, to.lowerBound, from.count))
        return try locked {
            guard !from.isEmpty else { return stream.lastCommitted }
            let uses = (source.use(from, writes: false), destination.use(to, writes: true))
            guard uses.0.allocation !== uses.1.allocation || !from.overlaps(to) else {
                throw OrchardError.invalid("The copy's source \(from) and destination \(to) overlap in \(source.name).")
            }
            return try transfer(uses.0, uses.1, kernel, counted: \.copies_requested)
        }
    }

    /// Waits for the operations that write the bytes, then copies them out.
    func read(_ buffer: Buffer, _ range: Range<Int>, to destination: UnsafeMutableRawPointer) throws {
        let deadline = self.deadline
        try wait(for: locked { buffer.allocation.lastWrite }, until: deadline)
        let kernel = try byteKernel(unless: buffer.contents != nil || Transfer.isAligned(range.lowerBound, range.count))
        let staging: Allocation? = try locked {
            if let contents = buffer.contents {
                destination.copyMemory(from: contents + range.lowerBound, byteCount: range.count)
                return nil
            }
            let staging = try allocate(UInt64(range.count), .shared, label: "staging")
            _ = try transfer(
                buffer.use(range, writes: false), Use(allocation: staging, range: 0..<range.count, writes: true),
                kernel,
                counted: \.copies_staging)
            return staging
        }
        guard let staging else { return }
        defer { try? locked { pool.release(staging) } }
        try wait(for: staging.lastUse, until: deadline)
        destination.copyMemory(from: staging.buffer.contents(), byteCount: range.count)
    }

    /// For a shared buffer, waits for the operations that use the bytes. The device writes to a private buffer, in
    /// order.
    func write(_ buffer: Buffer, _ range: Range<Int>, from source: UnsafeRawPointer) throws {
        if try writeDirectly(buffer, range, from: source) { return }
        let kernel = try byteKernel(unless: Transfer.isAligned(range.lowerBound, range.count))
        try locked {
            let staging = try allocate(UInt64(range.count), .shared, label: "staging")
            defer { pool.release(staging) }
            staging.buffer.contents().copyMemory(from: source, byteCount: range.count)
            _ = try transfer(
                Use(allocation: staging, range: 0..<range.count, writes: false), buffer.use(range, writes: true),
                kernel,
                counted: \.copies_staging)
        }
    }

    /// Moves the contents to another storage mode; the handle stays valid.
    func hint(_ buffer: Buffer, _ storage: UInt32) throws {
        let target = try locked { try resolve(storage) }
        let length = min(Transfer.roundedUp(Int(buffer.length)), buffer.allocation.bytes)
        let kernel = try byteKernel(unless: Transfer.isAligned(length))
        try locked {
            let old = buffer.allocation
            guard old.storage != target else { return }
            let fresh = try allocate(buffer.length, target, label: buffer.label)
            _ = try transfer(
                Use(allocation: old, range: 0..<length, writes: false),
                Use(allocation: fresh, range: 0..<length, writes: true),
                kernel, counted: \.copies_storage)
            buffer.allocation = fresh
            pool.release(old)
        }
    }

    // MARK: Parts

    /// Returns the kernel, compiled before the lock is taken; nil if a blit can be used.
    func byteKernel(unless isAligned: Bool) throws -> Pipeline? {
        isAligned ? nil : try copyKernels.pipeline(elementSize: 1, for: self)
    }

    /// Copies a run of bytes, under the lock: by the kernel if there is one, else by a blit.
    func transfer(
        _ source: Use, _ destination: Use, _ kernel: Pipeline?,
        counted kind: WritableKeyPath<orchard_statistics, UInt64>
    ) throws -> UInt64 {
        let bytes = source.range.count
        let ticket: UInt64
        if let kernel {
            let copy = StridedCopy(shape: [UInt64(bytes)], source: [1], destination: [1])
            ticket = try stridedCopy(copy, source, destination, kernel)
        } else {
            ticket = try stream.blit([source, destination]) {
                $0.copy(
                    from: source.allocation.buffer, sourceOffset: source.range.lowerBound,
                    to: destination.allocation.buffer,
                    destinationOffset: destination.range.lowerBound, size: bytes)
            }
        }
        statistics.countCopy(kind, bytes: UInt64(bytes))
        return ticket
    }

    /// The buffers are bound at the start of the ranges; `copy` gives the offsets of the first elements within them.
    func stridedCopy(_ copy: StridedCopy, _ source: Use, _ destination: Use, _ kernel: Pipeline) throws -> UInt64 {
        try stream.compute([source, destination], work: copy.work) { encoder in
            kernel.encodeCopy(copy, to: destination, on: encoder) {
                $0.setBuffer(source.allocation.buffer, offset: source.range.lowerBound, index: 0)
            }
        }
    }

    /// Returns false if the buffer is private.
    private func writeDirectly(_ buffer: Buffer, _ range: Range<Int>, from source: UnsafeRawPointer) throws -> Bool {
        let deadline = self.deadline
        while true {
            let pending: UInt64? = try locked {
                guard let contents = buffer.contents else { return nil }
                guard tickets.isComplete(buffer.allocation.lastUse) else { return buffer.allocation.lastUse }
                (contents + range.lowerBound).copyMemory(from: source, byteCount: range.count)
                buffer.allocation.lastWrite = 0
                return 0
            }
            guard let pending else { return false }
            if pending == 0 { return true }
            do { try wait(for: pending, until: deadline) } catch let error as OrchardError
                where error.status == ORCHARD_DEVICE_FAILED
            {
                // Operations that used the bytes have failed. The new bytes are written anyway.
            }
        }
    }
}
