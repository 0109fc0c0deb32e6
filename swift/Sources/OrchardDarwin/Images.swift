// dladdr, which finds the file that contains a function's code. Linux's C library has it too, but hides it from Swift.

public struct Dl_info {
    public var dli_fname: UnsafePointer<CChar>!
    public var dli_fbase: UnsafeMutableRawPointer!
    public var dli_sname: UnsafePointer<CChar>!
    public var dli_saddr: UnsafeMutableRawPointer!

    public init() {}
}

@_silgen_name("dladdr")
private func glibcAddress(_ address: UnsafeRawPointer?, _ info: UnsafeMutableRawPointer) -> Int32

/// Finds the file, and the nearest symbol before an address. Returns 0 if no file has the address.
public func dladdr(_ address: UnsafeRawPointer!, _ info: UnsafeMutablePointer<Dl_info>!) -> Int32 {
    glibcAddress(address, UnsafeMutableRawPointer(info))
}
