import COrchard
import XCTest

@testable import OrchardMetal

final class MaterializeTests: XCTestCase {
    private func view(
        _ buffer: UInt64, _ shape: [UInt64], _ strides: [Int64], size: UInt32 = 4, offset: UInt64 = 0,
        storage: orchard_storage = ORCHARD_STORAGE_DEFAULT, contiguous: Bool = true
    ) -> BlockWriter<orchard_view> {
        var block = BlockWriter<orchard_view>()
        block.header.buffer = buffer
        block.header.offset = offset
        block.header.element_size = size
        block.header.rank = UInt32(shape.count)
        block.header.storage = storage.rawValue
        block.header.flags = contiguous ? UInt32(ORCHARD_VIEW_CONTIGUOUS) : 0
        withUnsafeMutableBytes(of: &block.header.shape) { target in
            shape.withUnsafeBytes { target.copyMemory(from: $0) }
        }
        withUnsafeMutableBytes(of: &block.header.strides) { target in
            strides.withUnsafeBytes { target.copyMemory(from: $0) }
        }
        return block
    }

    private func materialize(_ view: BlockWriter<orchard_view>) throws -> orchard_materialized {
        var result = BlockWriter<orchard_materialized>().header
        try check(view.with { orchard_materialize($0, $1, &result, UInt64(MemoryLayout<orchard_materialized>.size)) })
        return result
    }

    private func writeBack(_ view: BlockWriter<orchard_view>, _ source: UInt64, _ offset: UInt64 = 0) throws -> UInt32 {
        var copies: UInt32 = 9
        try check(view.with { orchard_write_back($0, $1, source, offset, &copies) })
        return copies
    }

    private func copies(_ client: Client) throws -> [UInt64] {
        let statistics = try client.statistics
        return [statistics.copies_storage, statistics.copies_contiguous, statistics.copies_write_back]
    }

    func testWhatIsRightCostsNoCopy() throws {
        let client = try Client()
        for storage in [ORCHARD_STORAGE_SHARED, ORCHARD_STORAGE_PRIVATE] {
            let buffer = try client.buffer((0..<24).map { UInt32($0) }, storage)
            for expected in [ORCHARD_STORAGE_DEFAULT, storage] {
                let result = try materialize(view(buffer, [2, 1, 3], [3, 77, 1], offset: 8, storage: expected))
                XCTAssertEqual([result.buffer, result.offset, UInt64(result.copies)], [buffer, 8, 0])
                try client.release(result.buffer)
            }
            XCTAssertEqual(try writeBack(view(buffer, [6], [1], offset: 8), buffer, 8), 0)
        }
        XCTAssertEqual(try copies(client), [0, 0, 0])
        XCTAssertEqual(try client.statistics.dispatches, 0)
    }

    func testPrivateBecomesSharedByOneBlit() throws {
        let client = try Client()
        let buffer = try client.buffer((0..<24).map { UInt32($0) }, ORCHARD_STORAGE_PRIVATE)
        let result = try materialize(
            view(buffer, [4], [2], offset: 12, storage: ORCHARD_STORAGE_SHARED, contiguous: false))
        XCTAssertEqual(result.copies, 1)
        XCTAssertEqual(try client.info(result.buffer).storage, ORCHARD_STORAGE_SHARED.rawValue)
        XCTAssertEqual(try client.read(result.buffer, 7, of: UInt32.self, at: result.offset), [3, 4, 5, 6, 7, 8, 9])
        XCTAssertEqual(try copies(client), [1, 0, 0])
        XCTAssertEqual(try client.statistics.dispatches, 0)
    }

    func testStridedAndPrivateBecomesSharedAndContiguousByOneKernel() throws {
        let client = try Client()
        let buffer = try client.buffer((0..<12).map { UInt32($0) }, ORCHARD_STORAGE_PRIVATE)
        let transposed = view(buffer, [4, 3], [1, 4], storage: ORCHARD_STORAGE_SHARED)
        let result = try materialize(transposed)
        XCTAssertEqual(try client.read(result.buffer, 12, of: UInt32.self), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11])
        XCTAssertEqual(try copies(client), [0, 1, 0])
        XCTAssertEqual(try writeBack(transposed, result.buffer), 1)
        XCTAssertEqual(try copies(client), [0, 1, 1], "there and back: two copies")
        XCTAssertEqual(try client.read(buffer, 12, of: UInt32.self), (0..<12).map { UInt32($0) })
    }

    /// Random views compared with index arithmetic on the CPU: sizes, negative and zero strides, every element size.
    func testRandomViews() throws {
        let client = try Client()
        var generator = SplitMix(state: 7)
        for round in 0..<60 {
            let size = [1, 2, 4, 8][round % 4]
            let rank = Int.random(in: 0...5, using: &generator)
            let shape = (0..<rank).map { _ in Int.random(in: 1...5, using: &generator) }
            let strides = (0..<rank).map { _ in Int.random(in: -9...9, using: &generator) }
            let lowest = zip(shape, strides).reduce(0) { $0 + min(0, ($1.0 - 1) * $1.1) }
            let highest = zip(shape, strides).reduce(0) { $0 + max(0, ($1.0 - 1) * $1.1) }
            let bytes = (0..<(highest - lowest + 3) * size).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let buffer = try client.buffer(bytes, round % 3 == 0 ? ORCHARD_STORAGE_PRIVATE : ORCHARD_STORAGE_SHARED)
            let start = 1 - lowest
            let block = view(
                buffer, shape.map { UInt64($0) }, strides.map { Int64($0) }, size: UInt32(size),
                offset: UInt64(start * size))
            let result = try materialize(block)
            let expected = Self.indices(shape, strides).flatMap {
                bytes[((start + $0) * size)..<((start + $0 + 1) * size)]
            }
            XCTAssertEqual(
                try client.read(result.buffer, expected.count, of: UInt8.self, at: result.offset), expected,
                "\(shape) \(strides) \(size)")
            try client.release(result.buffer, buffer)
        }
    }

    private static func indices(_ shape: [Int], _ strides: [Int]) -> [Int] {
        zip(shape, strides).reduce([0]) { outer, axis in
            outer.flatMap { base in (0..<axis.0).map { base + $0 * axis.1 } }
        }
    }

    func testWriteBackScattersAndLeavesTheRest() throws {
        let client = try Client()
        let buffer = try client.buffer([UInt16](repeating: 9, count: 16))
        let source = try client.buffer((0..<6).map { UInt16($0) }, ORCHARD_STORAGE_PRIVATE)
        XCTAssertEqual(try writeBack(view(buffer, [3, 2], [-4, 1], size: 2, offset: 20), source), 1)
        XCTAssertEqual(try client.read(buffer, 16, of: UInt16.self), [9, 9, 4, 5, 9, 9, 2, 3, 9, 9, 0, 1, 9, 9, 9, 9])
        XCTAssertEqual(try writeBack(view(buffer, [3], [1], size: 2, offset: 2), source, 6), 1)
        XCTAssertEqual(try client.read(buffer, 4, of: UInt16.self), [9, 3, 4, 5])
    }

    func testOddLengthsOfPrivateBuffers() throws {
        for exact in [false, true] {
            let client = try Client(exact: exact)
            let bytes = (0..<7).map { UInt8($0) }
            let buffer = try client.buffer(bytes, ORCHARD_STORAGE_PRIVATE),
                copy = try client.buffer(7, ORCHARD_STORAGE_PRIVATE, zeroed: true)
            XCTAssertEqual(try client.read(buffer, 3, of: UInt8.self, at: 3), [3, 4, 5])
            try check(orchard_buffer_copy(buffer, 1, copy, 2, 5, nil))
            try check(orchard_buffer_fill(copy, 3, 2, 0xee, nil))
            XCTAssertEqual(try client.read(copy, 7, of: UInt8.self), [0, 0, 1, 0xee, 0xee, 4, 5])
            try check(orchard_buffer_hint(copy, ORCHARD_STORAGE_SHARED.rawValue))
            XCTAssertEqual(try client.read(copy, 7, of: UInt8.self), [0, 0, 1, 0xee, 0xee, 4, 5])
        }
    }

    func testBadViewsAreRefused() throws {
        let client = try Client()
        let buffer = try client.buffer([UInt32](repeating: 0, count: 16))
        let bad: [(BlockWriter<orchard_view>, String)] = [
            (view(buffer, [17], [1]), "does not lie inside"), (view(buffer, [2], [-1]), "does not lie inside"),
            (view(buffer, [.max, .max], [1, 1]), "does not lie inside"),
            (view(buffer, [3], [.max]), "does not lie inside"),
            (view(buffer, [3], [.min]), "does not lie inside"),
            (view(buffer, [1], [1], offset: .max - 3), "does not lie inside"),
            (view(buffer, [1], [1], offset: 2), "not a multiple of the element size 4"),
            (view(buffer, [1], [1], size: 3), "element_size to be 1, 2, 4 or 8 bytes, got 3"),
        ]
        for (block, message) in bad { assertFails(ORCHARD_INVALID_ARGUMENT, message) { _ = try materialize(block) } }
        assertFails(ORCHARD_INVALID_ARGUMENT, "rank", "got 9") {
            var block = view(buffer, [1], [1])
            block.header.rank = 9
            _ = try materialize(block)
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "share bytes") {
            _ = try writeBack(view(buffer, [2, 2], [0, 1]), client.buffer(64))
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "overlaps the view") {
            _ = try writeBack(view(buffer, [2], [2]), buffer, 8)
        }
        let empty = try materialize(view(buffer, [0, 4], [4, 1], storage: ORCHARD_STORAGE_PRIVATE))
        XCTAssertEqual(try client.info(empty.buffer).storage, ORCHARD_STORAGE_PRIVATE.rawValue)
    }

    func testStridedCopiesNeedTheirKernels() throws {
        let client = try Client(materialize: false)
        let buffer = try client.buffer([UInt32](repeating: 0, count: 16))
        assertFails(ORCHARD_UNSUPPORTED, "materialize_source") { _ = try materialize(view(buffer, [4, 4], [1, 4])) }
        _ = try materialize(view(buffer, [4, 4], [1, 4], storage: ORCHARD_STORAGE_PRIVATE, contiguous: false))
    }
}

/// Reproducible random numbers.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
