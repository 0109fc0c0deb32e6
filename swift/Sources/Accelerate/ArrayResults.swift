// Forms whose result is an array. Swift 6.0 rejects `&rows[i]` as a pointer to the elements of an array in an array; as
// an `inout` argument it is accepted.

public func vDSP_vadd(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ j: vDSP_Stride, _ c: inout [Float],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vadd(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vaddD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ j: vDSP_Stride, _ c: inout [Double],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vaddD(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vmul(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ j: vDSP_Stride, _ c: inout [Float],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vmul(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vmulD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ j: vDSP_Stride, _ c: inout [Double],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vmulD(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vsub(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ j: vDSP_Stride, _ c: inout [Float],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vsub(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vsubD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ j: vDSP_Stride, _ c: inout [Double],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vsubD(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vdiv(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ j: vDSP_Stride, _ c: inout [Float],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vdiv(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vdivD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ j: vDSP_Stride, _ c: inout [Double],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vdivD(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vmax(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ j: vDSP_Stride, _ c: inout [Float],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vmax(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vmaxD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ j: vDSP_Stride, _ c: inout [Double],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vmaxD(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vmin(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ j: vDSP_Stride, _ c: inout [Float],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vmin(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vminD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ j: vDSP_Stride, _ c: inout [Double],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vminD(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vmaxmg(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ j: vDSP_Stride, _ c: inout [Float],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vmaxmg(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vmaxmgD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ j: vDSP_Stride, _ c: inout [Double],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vmaxmgD(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vminmg(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ j: vDSP_Stride, _ c: inout [Float],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vminmg(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vminmgD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ j: vDSP_Stride, _ c: inout [Double],
    _ k: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vminmgD(a, i, b, j, $0.baseAddress!, k, count) }
}
public func vDSP_vsadd(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: inout [Float], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vsadd(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_vsaddD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: inout [Double], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vsaddD(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_vsmul(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: inout [Float], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vsmul(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_vsmulD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: inout [Double], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vsmulD(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_vsdiv(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: inout [Float], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vsdiv(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_vsdivD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: inout [Double], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vsdivD(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_vthr(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: inout [Float], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vthr(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_vthrD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: inout [Double], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vthrD(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_vthres(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: inout [Float], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vthres(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_vthresD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: inout [Double], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vthresD(a, i, b, $0.baseAddress!, j, count) }
}
public func vDSP_svdiv(
    _ a: UnsafePointer<Float>, _ b: UnsafePointer<Float>, _ i: vDSP_Stride, _ c: inout [Float], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_svdiv(a, b, i, $0.baseAddress!, j, count) }
}
public func vDSP_svdivD(
    _ a: UnsafePointer<Double>, _ b: UnsafePointer<Double>, _ i: vDSP_Stride, _ c: inout [Double], _ j: vDSP_Stride,
    _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_svdivD(a, b, i, $0.baseAddress!, j, count) }
}
public func vDSP_vma(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ j: vDSP_Stride, _ c: UnsafePointer<Float>,
    _ k: vDSP_Stride, _ d: inout [Float], _ l: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vma(a, i, b, j, c, k, $0.baseAddress!, l, count) }
}
public func vDSP_vmaD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ j: vDSP_Stride,
    _ c: UnsafePointer<Double>, _ k: vDSP_Stride, _ d: inout [Double], _ l: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vmaD(a, i, b, j, c, k, $0.baseAddress!, l, count) }
}
public func vDSP_vsma(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: UnsafePointer<Float>, _ j: vDSP_Stride,
    _ d: inout [Float], _ k: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vsma(a, i, b, c, j, $0.baseAddress!, k, count) }
}
public func vDSP_vsmaD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: UnsafePointer<Double>,
    _ j: vDSP_Stride, _ d: inout [Double], _ k: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vsmaD(a, i, b, c, j, $0.baseAddress!, k, count) }
}
public func vDSP_vneg(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: inout [Float], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vneg(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vnegD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: inout [Double], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vnegD(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vabs(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: inout [Float], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vabs(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vabsD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: inout [Double], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vabsD(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vnabs(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: inout [Float], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vnabs(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vnabsD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: inout [Double], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vnabsD(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vfrac(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: inout [Float], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vfrac(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vfracD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: inout [Double], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vfracD(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vsq(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: inout [Float], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vsq(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vsqD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: inout [Double], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    b.withUnsafeMutableBufferPointer { vDSP_vsqD(a, i, $0.baseAddress!, j, count) }
}
public func vDSP_vclr(_ a: inout [Float], _ i: vDSP_Stride, _ count: vDSP_Length) {
    a.withUnsafeMutableBufferPointer { vDSP_vclr($0.baseAddress!, i, count) }
}
public func vDSP_vclrD(_ a: inout [Double], _ i: vDSP_Stride, _ count: vDSP_Length) {
    a.withUnsafeMutableBufferPointer { vDSP_vclrD($0.baseAddress!, i, count) }
}
public func vDSP_vfill(_ a: UnsafePointer<Float>, _ b: inout [Float], _ i: vDSP_Stride, _ count: vDSP_Length) {
    b.withUnsafeMutableBufferPointer { vDSP_vfill(a, $0.baseAddress!, i, count) }
}
public func vDSP_vfillD(_ a: UnsafePointer<Double>, _ b: inout [Double], _ i: vDSP_Stride, _ count: vDSP_Length) {
    b.withUnsafeMutableBufferPointer { vDSP_vfillD(a, $0.baseAddress!, i, count) }
}
public func vDSP_vramp(
    _ a: UnsafePointer<Float>, _ b: UnsafePointer<Float>, _ c: inout [Float], _ i: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vramp(a, b, $0.baseAddress!, i, count) }
}
public func vDSP_vrampD(
    _ a: UnsafePointer<Double>, _ b: UnsafePointer<Double>, _ c: inout [Double], _ i: vDSP_Stride, _ count: vDSP_Length
) {
    c.withUnsafeMutableBufferPointer { vDSP_vrampD(a, b, $0.baseAddress!, i, count) }
}
public func vDSP_vsort(_ a: inout [Float], _ count: vDSP_Length, _ i: Int32) {
    a.withUnsafeMutableBufferPointer { vDSP_vsort($0.baseAddress!, count, i) }
}
public func vDSP_vsortD(_ a: inout [Double], _ count: vDSP_Length, _ i: Int32) {
    a.withUnsafeMutableBufferPointer { vDSP_vsortD($0.baseAddress!, count, i) }
}
public func vDSP_vsmsa(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: UnsafePointer<Float>,
    _ d: inout [Float], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vsmsa(a, i, b, c, $0.baseAddress!, j, count) }
}
public func vDSP_vsmsaD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: UnsafePointer<Double>,
    _ d: inout [Double], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vsmsaD(a, i, b, c, $0.baseAddress!, j, count) }
}
public func vDSP_vclip(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: UnsafePointer<Float>,
    _ d: inout [Float], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vclip(a, i, b, c, $0.baseAddress!, j, count) }
}
public func vDSP_vclipD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: UnsafePointer<Double>,
    _ d: inout [Double], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vclipD(a, i, b, c, $0.baseAddress!, j, count) }
}
public func vDSP_viclip(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: UnsafePointer<Float>,
    _ d: inout [Float], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_viclip(a, i, b, c, $0.baseAddress!, j, count) }
}
public func vDSP_viclipD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: UnsafePointer<Double>,
    _ d: inout [Double], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_viclipD(a, i, b, c, $0.baseAddress!, j, count) }
}
public func vDSP_vlim(
    _ a: UnsafePointer<Float>, _ i: vDSP_Stride, _ b: UnsafePointer<Float>, _ c: UnsafePointer<Float>,
    _ d: inout [Float], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vlim(a, i, b, c, $0.baseAddress!, j, count) }
}
public func vDSP_vlimD(
    _ a: UnsafePointer<Double>, _ i: vDSP_Stride, _ b: UnsafePointer<Double>, _ c: UnsafePointer<Double>,
    _ d: inout [Double], _ j: vDSP_Stride, _ count: vDSP_Length
) {
    d.withUnsafeMutableBufferPointer { vDSP_vlimD(a, i, b, c, $0.baseAddress!, j, count) }
}
