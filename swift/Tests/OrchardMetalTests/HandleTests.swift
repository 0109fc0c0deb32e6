import COrchard
import Metal
import XCTest

@testable import OrchardMetal

final class HandleTests: XCTestCase {
    /// Returns every function that takes a handle, with all other arguments valid.
    private func calls(_ handle: UInt64) -> [(name: String, kind: HandleKind, call: () -> Int32)] {
        let buffer = BlockWriter<orchard_buffer_options>(), library = BlockWriter<orchard_library_options>()
        let pipeline = BlockWriter<orchard_pipeline_options>()
        var dispatch = BlockWriter<orchard_dispatch>(), view = BlockWriter<orchard_view>()
        dispatch.header.pipeline = handle
        view.header.buffer = handle
        view.header.element_size = 1
        var number: UInt64 = 0, state: UInt32 = 0, byte: UInt8 = 0
        var info = BlockWriter<orchard_buffer_info>().header, statistics = BlockWriter<orchard_statistics>().header
        var materialized = BlockWriter<orchard_materialized>().header
        return [
            ("device_info", .context, { orchard_device_info(handle, 0, nil, 0, &number) }),
            ("buffer_create", .context, { buffer.with { orchard_buffer_create(handle, $0, $1, &number) } }),
            ("library_create", .context, { library.with { orchard_library_create(handle, $0, $1, &number) } }),
            ("commit", .context, { orchard_commit(handle, nil) }),
            ("ticket_poll", .context, { orchard_ticket_poll(handle, 0, &state) }),
            ("ticket_wait", .context, { orchard_ticket_wait(handle, 0, 0) }),
            ("completion_counter", .context, { orchard_completion_counter(handle, &number) }),
            ("statistics_get", .context, { orchard_statistics_get(handle, &statistics, 232) }),
            ("trim", .context, { orchard_trim(handle, 0) }),
            ("label_push", .context, { orchard_label_push(handle, "a", 1) }),
            ("label_pop", .context, { orchard_label_pop(handle) }),
            ("capture_begin", .context, { orchard_capture_begin(handle, "a", 1) }),
            ("capture_end", .context, { orchard_capture_end(handle) }),
            ("configure", .context, { orchard_configure(handle, "a", 1, "b", 1) }),
            ("report", .context, { orchard_report(handle, 0, nil, 0, &number) }),
            ("inject_fault", .context, { orchard_inject_fault(handle, "a", 1, 0, 0, 0) }),
            ("buffer_info_get", .buffer, { orchard_buffer_info_get(handle, &info, 48) }),
            ("buffer_read", .buffer, { orchard_buffer_read(handle, 0, &byte, 1) }),
            ("buffer_write", .buffer, { orchard_buffer_write(handle, 0, &byte, 1) }),
            ("buffer_fill", .buffer, { orchard_buffer_fill(handle, 0, 1, 0, nil) }),
            ("buffer_copy", .buffer, { orchard_buffer_copy(handle, 0, handle, 0, 1, nil) }),
            ("buffer_hint", .buffer, { orchard_buffer_hint(handle, 1) }),
            ("materialize", .buffer, { view.with { orchard_materialize($0, $1, &materialized, 32) } }),
            ("write_back", .buffer, { view.with { orchard_write_back($0, $1, handle, 0, nil) } }),
            ("library_functions", .library, { orchard_library_functions(handle, nil, 0, &number) }),
            ("pipeline_create", .library, { pipeline.with { orchard_pipeline_create(handle, $0, $1, &number) } }),
            ("pipeline_info", .pipeline, { orchard_pipeline_info(handle, nil, 0, &number) }),
            ("dispatch_encode", .pipeline, { dispatch.with { orchard_dispatch_encode($0, $1, nil) } }),
        ]
    }

    private func assert(
        _ handle: UInt64, gives status: orchard_status, except kind: HandleKind? = nil, file: StaticString = #filePath,
        line: UInt = #line
    ) {
        for entry in calls(handle) where entry.kind != kind {
            XCTAssertEqual(entry.call(), Int32(bitPattern: status.rawValue), entry.name, file: file, line: line)
        }
    }

    func testAReleasedHandleIsStaleEverywhere() throws {
        let client = try Client()
        let buffer = try client.buffer(16)
        try client.release(buffer)
        assert(buffer, gives: ORCHARD_STALE_HANDLE)
        XCTAssertEqual(orchard_release(buffer), Int32(bitPattern: ORCHARD_STALE_HANDLE.rawValue))
        XCTAssertEqual(orchard_retain(buffer), Int32(bitPattern: ORCHARD_STALE_HANDLE.rawValue))
        assert(0, gives: ORCHARD_STALE_HANDLE)
        assert(.max, gives: ORCHARD_STALE_HANDLE)
    }

    func testAHandleOfAnotherKindIsRefusedEverywhere() throws {
        let client = try Client()
        assert(try client.buffer(16), gives: ORCHARD_WRONG_KIND, except: .buffer)
        assert(client.context, gives: ORCHARD_WRONG_KIND, except: .context)
        XCTAssertEqual(orchard_close(try client.buffer(16)), Int32(bitPattern: ORCHARD_WRONG_KIND.rawValue))
        assertFails(ORCHARD_WRONG_KIND, "orchard_close") { try client.release(client.context) }
    }

    func testAClosedContextClosesItsHandles() throws {
        let client = try Client()
        let buffer = try client.buffer(16)
        try client.close()
        assert(client.context, gives: ORCHARD_CLOSED)
        assert(buffer, gives: ORCHARD_CLOSED)
        XCTAssertEqual(orchard_close(client.context), Int32(bitPattern: ORCHARD_CLOSED.rawValue))
    }

    func testOwnersAreCounted() throws {
        let client = try Client()
        let buffer = try client.buffer(16)
        try check(orchard_retain(buffer))
        XCTAssertEqual(try client.info(buffer).retain_count, 2)
        try client.release(buffer)
        XCTAssertEqual(try client.info(buffer).retain_count, 1)
        try client.release(buffer)
        assertFails(ORCHARD_STALE_HANDLE) { _ = try client.info(buffer) }
    }

    func testHandlesFitAJavaScriptNumber() throws {
        let client = try Client()
        for _ in 0..<100 {
            let handle = try client.buffer(1)
            XCTAssertLessThan(handle, 1 << 53)
            XCTAssertEqual(UInt64(Double(handle)), handle)
        }
    }

    /// Compares the table with a model: live handles must be found, and those that ended must not.
    func testRandomInsertionsAndReleases() throws {
        let table = HandleTable()
        let context = try Context(ContextOptions())
        var generator = SystemRandomNumberGenerator()
        var live: [UInt64: Int] = [:], ended: Set<UInt64> = []
        for _ in 0..<20_000 {
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: live[try table.insert(context.libraryStub())] = 1
            case 1:
                guard let handle = live.keys.randomElement() else { continue }
                try table.retain(handle)
                live[handle]! += 1
            case 2:
                guard let handle = live.keys.randomElement() else { continue }
                live[handle]! -= 1
                XCTAssertEqual(try table.release(handle) != nil, live[handle] == 0)
                if live[handle] == 0 {
                    live[handle] = nil
                    XCTAssertTrue(ended.insert(handle).inserted, "a handle was given out twice")
                }
            default:
                guard let handle = ended.randomElement() else { continue }
                XCTAssertThrowsError(try table.lookup(handle, as: Buffer.self))
                let forged = UInt64.random(in: 0...UInt64.max, using: &generator)
                if live[forged] == nil { XCTAssertThrowsError(try table.retain(forged)) }
            }
        }
        XCTAssertEqual(table.liveCount, live.count)
        for (handle, owners) in live { XCTAssertEqual(try table.owners(handle), UInt32(owners)) }
    }

    func testASlotRetiresBeforeAGenerationRepeats() throws {
        let table = HandleTable(lastGeneration: 3)
        let context = try Context(ContextOptions())
        var seen: Set<UInt64> = []
        for _ in 0..<50 {
            let handle = try table.insert(context.libraryStub())
            XCTAssertTrue(seen.insert(handle).inserted)
            _ = try table.release(handle)
        }
    }
}

extension Context {
    /// A cheap object for handles.
    fileprivate func libraryStub() throws -> Buffer {
        try locked { Buffer(self, length: 1, label: nil, allocation: Self.stub(device)) }
    }

    private static func stub(_ device: any MTLDevice) -> Allocation { shared ?? make(device) }
    nonisolated(unsafe) private static var shared: Allocation?
    private static func make(_ device: any MTLDevice) -> Allocation {
        let made = Allocation(device.makeBuffer(length: 4)!, bytes: 4, storage: .shared)
        shared = made
        return made
    }
}
