// LAPACK's functions under the names that Accelerate uses (CLAPACK). They call the machine's LAPACK: the library that
// ORCHARD_BLAS names, or the system's OpenBLAS. Without one, the first call prints the reason and ends the program.
import Foundation

@_silgen_name("orchard_lapack_call")
private func called(_ function: UnsafeMutableRawPointer, _ given: UnsafePointer<UnsafeMutableRawPointer?>, _ count: Int)
    -> Int32
@_silgen_name("orchard_lapack_float")
private func calledFloat(
    _ function: UnsafeMutableRawPointer, _ given: UnsafePointer<UnsafeMutableRawPointer?>, _ count: Int
) -> Float
@_silgen_name("orchard_lapack_double")
private func calledDouble(
    _ function: UnsafeMutableRawPointer, _ given: UnsafePointer<UnsafeMutableRawPointer?>, _ count: Int
) -> Double

public typealias __CLPK_integer = Int32
public typealias __CLPK_logical = Int32
public typealias __CLPK_real = Float
public typealias __CLPK_doublereal = Double
public typealias __LAPACK_int = Int32
public typealias LAPACKInteger = UnsafeMutablePointer<__CLPK_integer>?
public typealias LAPACKText = UnsafeMutablePointer<CChar>?
public typealias LAPACKReals = UnsafeMutablePointer<__CLPK_real>?
public typealias LAPACKDoubles = UnsafeMutablePointer<__CLPK_doublereal>?

/// The handle is only read.
private nonisolated(unsafe) let library: UnsafeMutableRawPointer? = {
    let named = ProcessInfo.processInfo.environment["ORCHARD_BLAS"] ?? ""
    let names = (named.isEmpty || named == "none" ? [] : [named]) + ["libopenblas.so.0", "liblapack.so.3"]
    return names.lazy.compactMap(open).first
}()

/// Loads a library. A library outside of the system's folders often needs a Fortran library from the same folder, where
/// the loader does not search. So this function loads the Fortran library first; the loader then finds it by name.
private func open(_ path: String) -> UnsafeMutableRawPointer? {
    if let handle = dlopen(path, RTLD_NOW) { return handle }
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    for name in ["libquadmath.so.0", "libgfortran.so.5"] { _ = dlopen("\(folder)/\(name)", RTLD_NOW | RTLD_GLOBAL) }
    return dlopen(path, RTLD_NOW)
}

private func find(_ name: String) -> UnsafeMutableRawPointer {
    guard let library else {
        fatalError(
            "\(name): there is no LAPACK on this machine; install OpenBLAS (libopenblas0), or name one by ORCHARD_BLAS")
    }
    guard let function = dlsym(library, name) else {
        fatalError("\(name): the LAPACK of this machine lacks this function; name another one by ORCHARD_BLAS")
    }
    return function
}

private func pointers(_ arguments: UnsafeMutableRawPointer?...) -> [UnsafeMutableRawPointer?] { arguments }

/// Calls a function whose arguments are all pointers.
private func lapack(_ name: String, _ arguments: UnsafeMutableRawPointer?...) -> Int32 {
    _ = called(find(name), arguments, arguments.count)
    return 0  // CLAPACK's functions return 0; `info` has the status
}

/// Factors a general matrix: A = P · L · U.
@discardableResult
public func sgetrf_(
    _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger, _ ipiv: LAPACKInteger,
    _ info: LAPACKInteger
) -> Int32 {
    lapack("sgetrf_", m, n, a, lda, ipiv, info)
}

@discardableResult
public func dgetrf_(
    _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger, _ ipiv: LAPACKInteger,
    _ info: LAPACKInteger
) -> Int32 {
    lapack("dgetrf_", m, n, a, lda, ipiv, info)
}

/// Inverts a matrix from the factors that getrf computes.
@discardableResult
public func sgetri_(
    _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger, _ ipiv: LAPACKInteger, _ work: LAPACKReals,
    _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sgetri_", n, a, lda, ipiv, work, lwork, info)
}

@discardableResult
public func dgetri_(
    _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger, _ ipiv: LAPACKInteger, _ work: LAPACKDoubles,
    _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dgetri_", n, a, lda, ipiv, work, lwork, info)
}

/// Solves A · X = B from the factors of A that getrf computes.
@discardableResult
public func sgetrs_(
    _ trans: LAPACKText, _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ ipiv: LAPACKInteger, _ b: LAPACKReals, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sgetrs_", trans, n, nrhs, a, lda, ipiv, b, ldb, info)
}

@discardableResult
public func dgetrs_(
    _ trans: LAPACKText, _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ ipiv: LAPACKInteger, _ b: LAPACKDoubles, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dgetrs_", trans, n, nrhs, a, lda, ipiv, b, ldb, info)
}

/// Solves A · X = B.
@discardableResult
public func sgesv_(
    _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger, _ ipiv: LAPACKInteger,
    _ b: LAPACKReals, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sgesv_", n, nrhs, a, lda, ipiv, b, ldb, info)
}

@discardableResult
public func dgesv_(
    _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger, _ ipiv: LAPACKInteger,
    _ b: LAPACKDoubles, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dgesv_", n, nrhs, a, lda, ipiv, b, ldb, info)
}

/// Solves a least-squares problem of full rank.
@discardableResult
public func sgels_(
    _ trans: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKReals,
    _ lda: LAPACKInteger, _ b: LAPACKReals, _ ldb: LAPACKInteger, _ work: LAPACKReals, _ lwork: LAPACKInteger,
    _ info: LAPACKInteger
) -> Int32 {
    lapack("sgels_", trans, m, n, nrhs, a, lda, b, ldb, work, lwork, info)
}

@discardableResult
public func dgels_(
    _ trans: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKDoubles,
    _ lda: LAPACKInteger, _ b: LAPACKDoubles, _ ldb: LAPACKInteger, _ work: LAPACKDoubles, _ lwork: LAPACKInteger,
    _ info: LAPACKInteger
) -> Int32 {
    lapack("dgels_", trans, m, n, nrhs, a, lda, b, ldb, work, lwork, info)
}

/// The singular value decomposition.
@discardableResult
public func sgesvd_(
    _ jobu: LAPACKText, _ jobvt: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKReals,
    _ lda: LAPACKInteger, _ s: LAPACKReals, _ u: LAPACKReals, _ ldu: LAPACKInteger, _ vt: LAPACKReals,
    _ ldvt: LAPACKInteger, _ work: LAPACKReals, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sgesvd_", jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, info)
}

@discardableResult
public func dgesvd_(
    _ jobu: LAPACKText, _ jobvt: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKDoubles,
    _ lda: LAPACKInteger, _ s: LAPACKDoubles, _ u: LAPACKDoubles, _ ldu: LAPACKInteger, _ vt: LAPACKDoubles,
    _ ldvt: LAPACKInteger, _ work: LAPACKDoubles, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dgesvd_", jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, info)
}

/// The singular value decomposition by divide and conquer.
@discardableResult
public func sgesdd_(
    _ jobz: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ s: LAPACKReals, _ u: LAPACKReals, _ ldu: LAPACKInteger, _ vt: LAPACKReals, _ ldvt: LAPACKInteger,
    _ work: LAPACKReals, _ lwork: LAPACKInteger, _ iwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sgesdd_", jobz, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, iwork, info)
}

@discardableResult
public func dgesdd_(
    _ jobz: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ s: LAPACKDoubles, _ u: LAPACKDoubles, _ ldu: LAPACKInteger, _ vt: LAPACKDoubles, _ ldvt: LAPACKInteger,
    _ work: LAPACKDoubles, _ lwork: LAPACKInteger, _ iwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dgesdd_", jobz, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, iwork, info)
}

/// The eigenvalues and eigenvectors of a general matrix.
@discardableResult
public func sgeev_(
    _ jobvl: LAPACKText, _ jobvr: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ wr: LAPACKReals, _ wi: LAPACKReals, _ vl: LAPACKReals, _ ldvl: LAPACKInteger, _ vr: LAPACKReals,
    _ ldvr: LAPACKInteger, _ work: LAPACKReals, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sgeev_", jobvl, jobvr, n, a, lda, wr, wi, vl, ldvl, vr, ldvr, work, lwork, info)
}

@discardableResult
public func dgeev_(
    _ jobvl: LAPACKText, _ jobvr: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ wr: LAPACKDoubles, _ wi: LAPACKDoubles, _ vl: LAPACKDoubles, _ ldvl: LAPACKInteger, _ vr: LAPACKDoubles,
    _ ldvr: LAPACKInteger, _ work: LAPACKDoubles, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dgeev_", jobvl, jobvr, n, a, lda, wr, wi, vl, ldvl, vr, ldvr, work, lwork, info)
}

/// The eigenvalues and eigenvectors of a symmetric matrix.
@discardableResult
public func ssyev_(
    _ jobz: LAPACKText, _ uplo: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ w: LAPACKReals, _ work: LAPACKReals, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("ssyev_", jobz, uplo, n, a, lda, w, work, lwork, info)
}

@discardableResult
public func dsyev_(
    _ jobz: LAPACKText, _ uplo: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ w: LAPACKDoubles, _ work: LAPACKDoubles, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dsyev_", jobz, uplo, n, a, lda, w, work, lwork, info)
}

/// The eigenvalues and eigenvectors of a symmetric matrix, by divide and conquer.
@discardableResult
public func ssyevd_(
    _ jobz: LAPACKText, _ uplo: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ w: LAPACKReals, _ work: LAPACKReals, _ lwork: LAPACKInteger, _ iwork: LAPACKInteger, _ liwork: LAPACKInteger,
    _ info: LAPACKInteger
) -> Int32 {
    lapack("ssyevd_", jobz, uplo, n, a, lda, w, work, lwork, iwork, liwork, info)
}

@discardableResult
public func dsyevd_(
    _ jobz: LAPACKText, _ uplo: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ w: LAPACKDoubles, _ work: LAPACKDoubles, _ lwork: LAPACKInteger, _ iwork: LAPACKInteger,
    _ liwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dsyevd_", jobz, uplo, n, a, lda, w, work, lwork, iwork, liwork, info)
}

/// Factors a matrix: A = Q · R.
@discardableResult
public func sgeqrf_(
    _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger, _ tau: LAPACKReals,
    _ work: LAPACKReals, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sgeqrf_", m, n, a, lda, tau, work, lwork, info)
}

@discardableResult
public func dgeqrf_(
    _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger, _ tau: LAPACKDoubles,
    _ work: LAPACKDoubles, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dgeqrf_", m, n, a, lda, tau, work, lwork, info)
}

/// Forms Q from the factors that geqrf computes.
@discardableResult
public func sorgqr_(
    _ m: LAPACKInteger, _ n: LAPACKInteger, _ k: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ tau: LAPACKReals, _ work: LAPACKReals, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sorgqr_", m, n, k, a, lda, tau, work, lwork, info)
}

@discardableResult
public func dorgqr_(
    _ m: LAPACKInteger, _ n: LAPACKInteger, _ k: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ tau: LAPACKDoubles, _ work: LAPACKDoubles, _ lwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dorgqr_", m, n, k, a, lda, tau, work, lwork, info)
}

/// Factors a symmetric positive definite matrix: A = L · Lᵀ or Uᵀ · U.
@discardableResult
public func spotrf_(
    _ uplo: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("spotrf_", uplo, n, a, lda, info)
}

@discardableResult
public func dpotrf_(
    _ uplo: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dpotrf_", uplo, n, a, lda, info)
}

/// Inverts a matrix from the factor that potrf computes.
@discardableResult
public func spotri_(
    _ uplo: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("spotri_", uplo, n, a, lda, info)
}

@discardableResult
public func dpotri_(
    _ uplo: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dpotri_", uplo, n, a, lda, info)
}

/// Solves A · X = B from the factor of A that potrf computes.
@discardableResult
public func spotrs_(
    _ uplo: LAPACKText, _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ b: LAPACKReals, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("spotrs_", uplo, n, nrhs, a, lda, b, ldb, info)
}

@discardableResult
public func dpotrs_(
    _ uplo: LAPACKText, _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ b: LAPACKDoubles, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dpotrs_", uplo, n, nrhs, a, lda, b, ldb, info)
}

/// Solves A · X = B for a symmetric positive definite A.
@discardableResult
public func sposv_(
    _ uplo: LAPACKText, _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ b: LAPACKReals, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sposv_", uplo, n, nrhs, a, lda, b, ldb, info)
}

@discardableResult
public func dposv_(
    _ uplo: LAPACKText, _ n: LAPACKInteger, _ nrhs: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ b: LAPACKDoubles, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dposv_", uplo, n, nrhs, a, lda, b, ldb, info)
}

/// Solves A · X = B for a triangular A.
@discardableResult
public func strtrs_(
    _ uplo: LAPACKText, _ trans: LAPACKText, _ diag: LAPACKText, _ n: LAPACKInteger, _ nrhs: LAPACKInteger,
    _ a: LAPACKReals, _ lda: LAPACKInteger, _ b: LAPACKReals, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("strtrs_", uplo, trans, diag, n, nrhs, a, lda, b, ldb, info)
}

@discardableResult
public func dtrtrs_(
    _ uplo: LAPACKText, _ trans: LAPACKText, _ diag: LAPACKText, _ n: LAPACKInteger, _ nrhs: LAPACKInteger,
    _ a: LAPACKDoubles, _ lda: LAPACKInteger, _ b: LAPACKDoubles, _ ldb: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dtrtrs_", uplo, trans, diag, n, nrhs, a, lda, b, ldb, info)
}

/// Estimates the reciprocal of the condition number from the factors that getrf computes.
@discardableResult
public func sgecon_(
    _ norm: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger, _ anorm: LAPACKReals,
    _ rcond: LAPACKReals, _ work: LAPACKReals, _ iwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("sgecon_", norm, n, a, lda, anorm, rcond, work, iwork, info)
}

@discardableResult
public func dgecon_(
    _ norm: LAPACKText, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger, _ anorm: LAPACKDoubles,
    _ rcond: LAPACKDoubles, _ work: LAPACKDoubles, _ iwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack("dgecon_", norm, n, a, lda, anorm, rcond, work, iwork, info)
}

/// The generalized singular value decomposition of two matrices.
@discardableResult
public func sggsvd_(
    _ jobu: LAPACKText, _ jobv: LAPACKText, _ jobq: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger,
    _ p: LAPACKInteger, _ k: LAPACKInteger, _ l: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ b: LAPACKReals, _ ldb: LAPACKInteger, _ alpha: LAPACKReals, _ beta: LAPACKReals, _ u: LAPACKReals,
    _ ldu: LAPACKInteger, _ v: LAPACKReals, _ ldv: LAPACKInteger, _ q: LAPACKReals, _ ldq: LAPACKInteger,
    _ work: LAPACKReals, _ iwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack(
        "sggsvd_", jobu, jobv, jobq, m, n, p, k, l, a, lda, b, ldb, alpha, beta, u, ldu, v, ldv, q, ldq, work, iwork,
        info
    )
}

@discardableResult
public func dggsvd_(
    _ jobu: LAPACKText, _ jobv: LAPACKText, _ jobq: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger,
    _ p: LAPACKInteger, _ k: LAPACKInteger, _ l: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ b: LAPACKDoubles, _ ldb: LAPACKInteger, _ alpha: LAPACKDoubles, _ beta: LAPACKDoubles, _ u: LAPACKDoubles,
    _ ldu: LAPACKInteger, _ v: LAPACKDoubles, _ ldv: LAPACKInteger, _ q: LAPACKDoubles, _ ldq: LAPACKInteger,
    _ work: LAPACKDoubles, _ iwork: LAPACKInteger, _ info: LAPACKInteger
) -> Int32 {
    lapack(
        "dggsvd_", jobu, jobv, jobq, m, n, p, k, l, a, lda, b, ldb, alpha, beta, u, ldu, v, ldv, q, ldq, work, iwork,
        info
    )
}

/// Random numbers of distribution 1 (uniform on (0, 1)), 2 (uniform on (−1, 1)) or 3 (normal).
@discardableResult
public func slarnv_(_ idist: LAPACKInteger, _ iseed: LAPACKInteger, _ n: LAPACKInteger, _ x: LAPACKReals) -> Int32 {
    lapack("slarnv_", idist, iseed, n, x)
}

@discardableResult
public func dlarnv_(_ idist: LAPACKInteger, _ iseed: LAPACKInteger, _ n: LAPACKInteger, _ x: LAPACKDoubles) -> Int32 {
    lapack("dlarnv_", idist, iseed, n, x)
}

/// The norm of a general matrix: max |a| (M), the largest sum of a column (1) or of a row (I), or Frobenius (F).
/// CLAPACK returns a double for both types.
public func slange_(
    _ norm: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKReals, _ lda: LAPACKInteger,
    _ work: LAPACKReals
) -> __CLPK_doublereal { Double(calledFloat(find("slange_"), pointers(norm, m, n, a, lda, work), 6)) }

public func dlange_(
    _ norm: LAPACKText, _ m: LAPACKInteger, _ n: LAPACKInteger, _ a: LAPACKDoubles, _ lda: LAPACKInteger,
    _ work: LAPACKDoubles
) -> __CLPK_doublereal { calledDouble(find("dlange_"), pointers(norm, m, n, a, lda, work), 6) }
