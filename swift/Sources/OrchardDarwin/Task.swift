// The functions that report a program's memory and times on Apple's systems.
@_exported import Glibc

public typealias task_flavor_t = natural_t
public typealias task_info_t = UnsafeMutablePointer<integer_t>

public struct time_value: Sendable {
    public var seconds: integer_t = 0
    public var microseconds: integer_t = 0
    public init() {}
}
public typealias time_value_t = time_value

public struct mach_task_basic_info: Sendable {
    public var virtual_size: mach_vm_size_t = 0
    public var resident_size: mach_vm_size_t = 0
    public var resident_size_max: mach_vm_size_t = 0
    public var user_time = time_value_t()
    public var system_time = time_value_t()
    public var policy: Int32 = 0
    public var suspend_count: integer_t = 0
    public init() {}
}
public typealias mach_task_basic_info_data_t = mach_task_basic_info
public let MACH_TASK_BASIC_INFO: Int32 = 20
public let mach_task_self_: mach_port_t = 1

/// Fills a `mach_task_basic_info` of this program. Other flavors and tasks return an error.
@discardableResult
public func task_info(
    _ task: mach_port_t, _ flavor: task_flavor_t, _ result: task_info_t?,
    _ count: UnsafeMutablePointer<mach_msg_type_number_t>
) -> kern_return_t {
    let words = MemoryLayout<mach_task_basic_info>.size / MemoryLayout<integer_t>.size
    guard task == mach_task_self_, flavor == task_flavor_t(MACH_TASK_BASIC_INFO), let result, count.pointee >= words
    else { return KERN_INVALID_ARGUMENT }
    UnsafeMutableRawPointer(result).copyMemory(from: [basicInfo()], byteCount: words * 4)
    count.pointee = mach_msg_type_number_t(words)
    return KERN_SUCCESS
}

private func basicInfo() -> mach_task_basic_info {
    var info = mach_task_basic_info(), usage = rusage()
    getrusage(__rusage_who_t(0), &usage)  // RUSAGE_SELF
    let page = UInt64(sysconf(Int32(_SC_PAGESIZE)))
    (info.virtual_size, info.resident_size) = pages().map { ($0 * page, $1 * page) } ?? (0, 0)
    info.resident_size_max = max(info.resident_size, UInt64(usage.ru_maxrss) * 1024)
    info.user_time.seconds = integer_t(usage.ru_utime.tv_sec)
    info.user_time.microseconds = integer_t(usage.ru_utime.tv_usec)
    info.system_time.seconds = integer_t(usage.ru_stime.tv_sec)
    info.system_time.microseconds = integer_t(usage.ru_stime.tv_usec)
    return info
}

/// Returns the virtual and the resident pages: the first numbers of /proc/self/statm.
private func pages() -> (UInt64, UInt64)? {
    guard let file = fopen("/proc/self/statm", "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, Int32(line.count), file) != nil else { return nil }
    let numbers = String(cString: line).split(separator: " ").compactMap { UInt64($0) }
    return numbers.count < 2 ? nil : (numbers[0], numbers[1])
}
