import COrchard
import Foundation

/// The first fields of every struct of the interface.
protocol VersionedStruct {
    init()
    var size: UInt32 { get set }
    var version: UInt32 { get set }
}

extension orchard_open_options: VersionedStruct {}
extension orchard_buffer_options: VersionedStruct {}
extension orchard_buffer_info: VersionedStruct {}
extension orchard_view: VersionedStruct {}
extension orchard_materialized: VersionedStruct {}
extension orchard_library_options: VersionedStruct {}
extension orchard_pipeline_options: VersionedStruct {}
extension orchard_dispatch: VersionedStruct {}
extension orchard_statistics: VersionedStruct {}

private let headerBytes = MemoryLayout<UInt32>.size * 2

/// Checks the header of a caller's struct. Returns the number of bytes that both sides know, at most `known`.
private func commonBytes(_ pointer: UnsafeRawPointer?, _ length: UInt64, known: Int, _ name: String) throws -> Int {
    guard let pointer else { throw OrchardError.invalid("\(name): the pointer is null.") }
    guard UInt(bitPattern: pointer) % 8 == 0 else {
        throw OrchardError.invalid("\(name): the pointer is not aligned to 8 bytes.")
    }
    guard length >= headerBytes, length <= Int32.max else {
        throw OrchardError.invalid(
            "\(name): expected a block of at least \(known) and less than 2^31 bytes, got \(length).")
    }
    let size = pointer.load(as: UInt32.self)
    let version = pointer.load(fromByteOffset: 4, as: UInt32.self)
    guard version == UInt32(ORCHARD_ABI_VERSION) else {
        throw OrchardError.invalid("\(name): expected version \(ORCHARD_ABI_VERSION), got version \(version).")
    }
    guard size >= headerBytes, UInt64(size) <= length else {
        throw OrchardError.invalid("\(name): size \(size) does not fit the block of \(length) bytes.")
    }
    return min(Int(size), known)
}

/// A caller's descriptor: the struct at its start, and the bytes to which its spans point. Valid only during the call.
struct Block<Header: VersionedStruct> {
    let header: Header
    private let bytes: UnsafeRawBufferPointer
    private let name: String

    /// If a caller knows fewer fields, the struct is padded with zeros, which mean the defaults.
    init(_ pointer: UnsafeRawPointer?, _ length: UInt64, _ name: String) throws {
        let common = try commonBytes(pointer, length, known: MemoryLayout<Header>.size, name)
        var header = Header()
        withUnsafeMutableBytes(of: &header) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: pointer, count: common))
        }
        self.header = header
        self.name = name
        bytes = UnsafeRawBufferPointer(start: pointer, count: Int(length))
    }

    func data(_ span: orchard_span, _ field: String) throws -> UnsafeRawBufferPointer {
        let end = UInt64(span.offset) + UInt64(span.length)
        guard end <= bytes.count else {
            throw OrchardError.invalid("\(name): \(field) ends at byte \(end) of a block of \(bytes.count) bytes.")
        }
        return UnsafeRawBufferPointer(rebasing: bytes[Int(span.offset)..<Int(end)])
    }

    /// Returns nil if the span is empty.
    func text(_ span: orchard_span, _ field: String) throws -> String? {
        span.length == 0 ? nil : try utf8(data(span, field), "\(name): \(field)")
    }

    func array<Element>(_ span: orchard_span, of type: Element.Type, _ field: String) throws -> UnsafeBufferPointer<
        Element
    > {
        let data = try data(span, field)
        guard data.count % MemoryLayout<Element>.size == 0, data.count == 0 || span.offset % 8 == 0 else {
            throw OrchardError.invalid(
                "\(name): expected \(field) to be a multiple of \(MemoryLayout<Element>.size) bytes, aligned to 8, "
                    + "got \(data.count) bytes at offset \(span.offset).")
        }
        return data.bindMemory(to: Element.self)
    }

    func namedTexts(_ span: orchard_span, _ field: String) throws -> [(name: String, text: String)] {
        try array(span, of: orchard_named_text.self, field).map {
            (try text($0.name, "a name in \(field)") ?? "", try text($0.text, "a text in \(field)") ?? "")
        }
    }
}

/// Sets those fields of a caller's struct that the caller knows.
func fill<Result: VersionedStruct>(
    _ pointer: UnsafeMutableRawPointer?, _ length: UInt64, _ name: String, _ make: () throws -> Result
) throws {
    let common = try commonBytes(pointer, length, known: MemoryLayout<Result>.size, name)
    var result = try make()
    result.size = UInt32(common)
    result.version = UInt32(ORCHARD_ABI_VERSION)
    withUnsafeBytes(of: &result) { pointer!.copyMemory(from: $0.baseAddress!, byteCount: common) }
}

/// Returns text given by pointer and length.
func text(_ pointer: UnsafePointer<CChar>?, _ length: UInt64, _ name: String) throws -> String {
    guard length <= Int32.max else {
        throw OrchardError.invalid("\(name): expected less than 2^31 bytes, got \(length).")
    }
    guard let pointer else { throw OrchardError.invalid("\(name): the pointer is null.") }
    return try utf8(UnsafeRawBufferPointer(start: pointer, count: Int(length)), name)
}

private func utf8(_ bytes: UnsafeRawBufferPointer, _ name: String) throws -> String {
    guard let text = String(bytes: bytes, encoding: .utf8) else { throw OrchardError.invalid("\(name) is not UTF-8.") }
    return text
}

/// Writes text for the caller. `committed` runs once the text is known to fit.
func give(
    _ text: String, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64, _ length: UnsafeMutablePointer<UInt64>?,
    truncating: Bool = false, committed: () -> Void = {}
) throws {
    guard let length else { throw OrchardError.invalid("length: the pointer is null.") }
    guard buffer != nil || capacity == 0 else {
        throw OrchardError.invalid("buffer: the pointer is null, its capacity \(capacity).")
    }
    let bytes = Array(text.utf8)
    let fitting = Int(min(UInt64(bytes.count), capacity))
    length.pointee = UInt64(bytes.count)
    guard fitting == bytes.count || truncating else {
        throw OrchardError.limit(
            "The text has \(bytes.count) bytes; the buffer holds \(capacity). Call again with a larger one.")
    }
    bytes.withUnsafeBytes { source in
        if fitting > 0 { UnsafeMutableRawPointer(buffer!).copyMemory(from: source.baseAddress!, byteCount: fitting) }
    }
    committed()
}

/// Returns an out-parameter, or throws if it is null.
func required<Value>(_ pointer: UnsafeMutablePointer<Value>?, _ name: String) throws -> UnsafeMutablePointer<Value> {
    guard let pointer else { throw OrchardError.invalid("\(name): the pointer is null.") }
    return pointer
}

enum JSON {
    static func text(_ value: Any) -> String {
        guard JSONSerialization.isValidJSONObject(value),
            let data = try? JSONSerialization.data(
                withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes])
        else { return "null" }
        return String(decoding: data, as: UTF8.self)
    }
}
