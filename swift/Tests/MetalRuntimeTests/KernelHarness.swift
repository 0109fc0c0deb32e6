import Foundation
import MetalRuntime
import XCTest

/// Compiles and runs kernels through the runtime's C interface, without the Metal module, so that a test of a language
/// rule takes three lines: source, operands, expectation.
struct KernelFailure: Error, CustomStringConvertible {
    let description: String
}

struct Finding: Decodable, CustomStringConvertible {
    let kind, severity, message: String
    let kernel, file, buffer: String?
    let line: Int
    let thread, other_thread, threadgroup, other_threadgroup: [Int]?
    let other_line: Int?
    let offset, count: Int?
    var description: String { "[\(kind)] \(message)" }
}

/// A device buffer of a test.
final class TestBuffer {
    let address: UnsafeMutableRawPointer
    let length: Int
    let label: String

    init(length: Int, label: String = "buffer") {
        self.length = length
        self.label = label
        address = mrt_memory_allocate(length, label)!
    }

    convenience init<T>(_ values: [T], label: String = "buffer") {
        self.init(length: values.count * MemoryLayout<T>.stride, label: label)
        values.withUnsafeBytes { address.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
        mrt_memory_mark_written(address, length)
    }

    deinit { mrt_memory_free(address) }

    func array<T>(_: T.Type = T.self) -> [T] {
        Array(
            UnsafeBufferPointer(start: address.assumingMemoryBound(to: T.self), count: length / MemoryLayout<T>.stride))
    }
}

final class KernelLibrary {
    let handle: OpaquePointer
    let warnings: String

    /// `version` is a raw value of `MTLLanguageVersion`, such as 0x30001; 0 is the newest.
    init(
        _ source: String, mathMode: UInt32 = 0, precise: Bool = true, macros: [String: String] = [:],
        version: UInt32 = 0
    ) throws {
        var message: UnsafeMutablePointer<CChar>?
        let full =
            source.contains("#include") ? source : "#include <metal_stdlib>\nusing namespace metal;\n#line 1\n" + source
        let names = macros.map { (strdup($0.key), strdup($0.value)) }
        defer {
            names.forEach {
                free($0.0); free($0.1)
            }
        }
        let pairs = names.map { mrt_macro(name: UnsafePointer($0.0), value: UnsafePointer($0.1)) }
        let library = pairs.withUnsafeBufferPointer { pointer -> OpaquePointer? in
            var options = mrt_compile_options(
                language_version: version, math_mode: mathMode, math_functions: precise ? 1 : 0,
                macros: pointer.baseAddress, macro_count: pointer.count, max_threads: 0)
            return mrt_library_create(full, &options, &message)
        }
        warnings = message.map { String(cString: $0) } ?? ""
        if let message { mrt_string_free(message) }
        guard let library else { throw KernelFailure(description: warnings) }
        handle = library
    }

    deinit { mrt_library_release(handle) }

    var functionNames: [String] {
        (0..<mrt_library_function_count(handle)).map { String(cString: mrt_library_function_name(handle, $0)) }
    }

    func function(_ name: String, constants: [mrt_constant_value] = []) throws -> KernelFunction {
        var message: UnsafeMutablePointer<CChar>?
        let function = mrt_function_create(handle, name, constants, constants.count, &message)
        let text = message.map { String(cString: $0) } ?? "no message"
        if let message { mrt_string_free(message) }
        guard let function else { throw KernelFailure(description: text) }
        return KernelFunction(handle: function)
    }
}

final class KernelFunction {
    let handle: OpaquePointer
    init(handle: OpaquePointer) { self.handle = handle }
    deinit { mrt_function_release(handle) }
    var info: mrt_function_info { mrt_function_info_get(handle).pointee }

    /// Runs one dispatch with `buffers` at indices 0, 1, …; throws the runtime's message on failure.
    @discardableResult
    func run(
        _ buffers: [TestBuffer], grid: Int, group: Int, threadgroupLengths: [Int] = [], count: Bool = false,
        epoch: UInt64? = nil
    ) throws -> mrt_counters {
        try run(
            buffers, grid: (grid, 1, 1), group: (group, 1, 1), threadgroupLengths: threadgroupLengths, count: count,
            epoch: epoch)
    }

    @discardableResult
    func run(
        _ buffers: [TestBuffer], grid: (Int, Int, Int), group: (Int, Int, Int), threadgroupLengths: [Int] = [],
        count: Bool = false, epoch: UInt64? = nil, ordered: [TestBuffer] = []
    ) throws -> mrt_counters {
        var dispatch = mrt_dispatch()
        dispatch.function = handle
        let labels = buffers.map { strdup($0.label) }
        defer { labels.forEach { free($0) } }
        withUnsafeMutableBytes(of: &dispatch.buffers) { raw in
            let bound = raw.bindMemory(to: mrt_bound_buffer.self)
            for (index, buffer) in buffers.enumerated() {
                bound[index] = mrt_bound_buffer(
                    address: buffer.address, length: buffer.length, label: labels[index], is_bytes: false)
            }
        }
        withUnsafeMutableBytes(of: &dispatch.threadgroup_lengths) { raw in
            let lengths = raw.bindMemory(to: UInt32.self)
            for (index, length) in threadgroupLengths.enumerated() { lengths[index] = UInt32(length) }
        }
        dispatch.grid = mrt_size(width: UInt64(grid.0), height: UInt64(grid.1), depth: UInt64(grid.2))
        dispatch.threads_per_threadgroup = mrt_size(
            width: UInt64(group.0), height: UInt64(group.1), depth: UInt64(group.2))
        dispatch.epoch = epoch ?? mrt_epoch_next()
        dispatch.count = count
        var counters = mrt_counters()
        var message: UnsafeMutablePointer<CChar>?
        let orderedResources: [UnsafeRawPointer?] = ordered.map { UnsafeRawPointer($0.address) }
        let result = orderedResources.withUnsafeBufferPointer { pointers in
            dispatch.ordered_resources = pointers.baseAddress
            dispatch.ordered_resource_count = pointers.count
            return mrt_dispatch_run(&dispatch, &counters, &message)
        }
        let text = message.map { String(cString: $0) } ?? ""
        if let message { mrt_string_free(message) }
        guard result == MRT_RESULT_OK else { throw KernelFailure(description: "result \(result.rawValue): \(text)") }
        return counters
    }
}

/// Returns the findings so far, and clears the list.
func takeFindings() -> [Finding] {
    let json = mrt_findings_json(true)!
    defer { mrt_string_free(json) }
    return (try? JSONDecoder().decode([Finding].self, from: Data(String(cString: json).utf8))) ?? []
}

/// Runs `body` with a setting, then restores the old value.
func withSetting<T>(_ name: String, _ value: String, _ body: () throws -> T) rethrows -> T {
    let old = mrt_setting_get(name)
    defer {
        if let old {
            _ = mrt_setting_set(name, old, nil)
            mrt_string_free(old)
        }
    }
    precondition(mrt_setting_set(name, value, nil), "no setting \(name)")
    return try body()
}
