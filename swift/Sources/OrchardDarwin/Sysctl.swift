// The sysctl names that programs use to describe the machine.
@_exported import Glibc

private enum Value {
    case number(Int64, bytes: Int)
    case text(String)
}

private func value(_ name: String) -> Value? {
    switch name {
    case "hw.ncpu", "hw.activecpu", "hw.logicalcpu", "hw.logicalcpu_max", "hw.physicalcpu", "hw.physicalcpu_max":
        return .number(Int64(sysconf(Int32(_SC_NPROCESSORS_ONLN))), bytes: 4)
    case "hw.memsize":
        return .number(Int64(sysconf(Int32(_SC_PHYS_PAGES))) * Int64(sysconf(Int32(_SC_PAGESIZE))), bytes: 8)
    case "hw.pagesize": return .number(Int64(sysconf(Int32(_SC_PAGESIZE))), bytes: 8)
    case "hw.machine": return .text(text(names().machine))
    case "hw.model", "machdep.cpu.brand_string": return .text("Linux")
    case "kern.osrelease": return .text(text(names().release))
    case "kern.ostype": return .text("Linux")
    default: return nil
    }
}

private func names() -> utsname {
    var names = utsname()
    uname(&names)
    return names
}

/// Returns the text in an array of C, which Swift sees as a tuple.
private func text<Characters>(_ characters: Characters) -> String {
    withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}

/// Returns -1 with `ENOENT` for an unknown name, or with `EPERM` if a new value is passed.
@discardableResult
public func sysctlbyname(
    _ name: UnsafePointer<CChar>, _ old: UnsafeMutableRawPointer?, _ oldLength: UnsafeMutablePointer<Int>?,
    _ new: UnsafeMutableRawPointer?, _ newLength: Int
) -> Int32 {
    guard new == nil else { return failed(EPERM) }
    guard let value = value(String(cString: name)) else { return failed(ENOENT) }
    let bytes: [UInt8]
    switch value {
    case .number(let number, let count): bytes = withUnsafeBytes(of: number.littleEndian) { Array($0.prefix(count)) }
    case .text(let text): bytes = Array(text.utf8) + [0]
    }
    defer { oldLength?.pointee = bytes.count }
    guard let old else { return 0 }
    guard let oldLength, oldLength.pointee >= bytes.count else { return failed(ENOMEM) }
    old.copyMemory(from: bytes, byteCount: bytes.count)
    return 0
}

private func failed(_ code: Int32) -> Int32 {
    errno = code
    return -1
}
