import COrchard

/// Makes a view's elements available in the requested storage and layout, and writes results back into it.
extension Context {
    struct Materialized {
        let buffer: Buffer
        let offset: UInt64
    }

    /// Returns nil if the view needs no copy.
    func materialize(_ view: View, storage: UInt32, contiguous: Bool, label: String?) throws -> Materialized? {
        let changesLayout = contiguous && !view.isRowMajor
        let kernel =
            changesLayout
            ? try copyKernels.pipeline(elementSize: view.elementSize, for: self)
            : try byteKernel(unless: Transfer.isAligned(blitRange(view).lowerBound, blitRange(view).count))
        return try locked {
            let current = view.buffer.allocation.storage
            let target = storage == ORCHARD_STORAGE_DEFAULT.rawValue ? current : try resolve(storage)
            guard changesLayout || target != current else { return nil }
            return changesLayout
                ? try gather(view, target, kernel!, label)
                : try move(view, target, kernel, label)
        }
    }

    /// Returns whether a copy was needed.
    func writeBack(_ view: View, from source: Buffer, at offset: UInt64) throws -> Bool {
        guard view.isInjective else {
            throw OrchardError.invalid(
                "view: two elements of shape \(view.shape) with strides \(view.strides) share bytes.")
        }
        guard offset % UInt64(view.elementSize) == 0 else {
            throw OrchardError.invalid(
                "source_offset: \(offset) is not a multiple of the element size \(view.elementSize).")
        }
        let bytes = view.count * UInt64(view.elementSize)
        let from = try source.range(offset, bytes, "source")
        if view.count == 0 || (source === view.buffer && offset == view.offset && view.isRowMajor) { return false }
        guard source !== view.buffer || !from.overlaps(view.range) else {
            throw OrchardError.invalid("The source \(from) overlaps the view \(view.range) in \(view.buffer.name).")
        }
        let kernel =
            view.isRowMajor
            ? try byteKernel(unless: Transfer.isAligned(from.lowerBound, view.range.lowerBound, from.count))
            : try copyKernels.pipeline(elementSize: view.elementSize, for: self)
        try locked { try scatter(source.use(from, writes: false), view, kernel) }
        return true
    }

    // MARK: Under the lock

    private func gather(_ view: View, _ storage: Storage, _ kernel: Pipeline, _ label: String?) throws -> Materialized {
        let bytes = view.count * UInt64(view.elementSize)
        let fresh = try allocate(bytes, storage, label: label)
        var copy = StridedCopy(shape: view.shape, source: view.strides, destination: View.rowMajorStrides(view.shape))
        copy.sourceStart = view.start
        let destination = Use(allocation: fresh, range: 0..<Int(bytes), writes: true)
        _ = try stridedCopy(copy, view.buffer.use(view.range, writes: false), destination, kernel)
        statistics.countCopy(\.copies_contiguous, bytes: bytes)
        return Materialized(buffer: Buffer(self, length: bytes, label: label, allocation: fresh), offset: 0)
    }

    /// Keeps the layout: one run of bytes, from the lowest element to the highest.
    private func move(_ view: View, _ storage: Storage, _ kernel: Pipeline?, _ label: String?) throws -> Materialized {
        let range = blitRange(view)
        let length = UInt64(max(range.count, 1))
        let fresh = try allocate(length, storage, label: label)
        if !range.isEmpty {
            let destination = Use(allocation: fresh, range: 0..<range.count, writes: true)
            _ = try transfer(view.buffer.use(range, writes: false), destination, kernel, counted: \.copies_storage)
        }
        return Materialized(
            buffer: Buffer(self, length: length, label: label, allocation: fresh),
            offset: view.offset - UInt64(range.lowerBound))
    }

    private func scatter(_ source: Use, _ view: View, _ kernel: Pipeline?) throws {
        let destination = view.buffer.use(view.range, writes: true)
        if view.isRowMajor {
            _ = try transfer(source, destination, kernel, counted: \.copies_write_back)
            return
        }
        var copy = StridedCopy(shape: view.shape, source: View.rowMajorStrides(view.shape), destination: view.strides)
        copy.destinationStart = view.start
        _ = try stridedCopy(copy, source, destination, kernel!)
        statistics.countCopy(\.copies_write_back, bytes: UInt64(source.range.count))
    }

    /// The view's bytes, extended to a blit's alignment within the allocation.
    private func blitRange(_ view: View) -> Range<Int> {
        guard !view.range.isEmpty else { return view.range }
        let lower = view.range.lowerBound / Transfer.granularity * Transfer.granularity
        let upper = Transfer.roundedUp(view.range.upperBound)
        return lower..<(upper <= view.buffer.allocation.bytes ? upper : view.range.upperBound)
    }
}
