// LAPACK, if the system's BLAS includes it.
//
// LAPACK's matrices are column-major, so it sees a row-major matrix as its transpose: a lower triangle is an upper one,
// and A X = B is Xᵀ Aᵀ = Bᵀ. Methods have the names, arguments and results of LAPACK's routines, without the letter for
// the precision; scalars are passed by value, and `info` is returned. See LAPACK's documentation.
//
// Check for NaN and infinity before calling an iterative routine (gesdd, gesvd, syevd, stedc, gelsd): it may not
// terminate.
#pragma once

#include "blas.h"

#include <climits>
#include <cmath>
#include <initializer_list>
#include <string>

namespace orchard {

// The length of a string argument. Fortran compilers pass these after all other arguments; routines compiled otherwise
// ignore them.
using TextLength = size_t;

template <class T> struct LapackRoutines {
  using Text = const char *;
  using Int = const int *;
  using L = TextLength;
  void (*potrf)(Text uplo, Int n, T *a, Int lda, int *info, L);
  void (*potrs)(Text uplo, Int n, Int nrhs, const T *a, Int lda, T *b, Int ldb, int *info, L);
  void (*potri)(Text uplo, Int n, T *a, Int lda, int *info, L);
  void (*trsm)(Text side, Text uplo, Text trans, Text diag, Int m, Int n, const T *alpha, const T *a, Int lda, T *b,
               Int ldb, L, L, L, L);
  void (*trtrs)(Text uplo, Text trans, Text diag, Int n, Int nrhs, const T *a, Int lda, T *b, Int ldb, int *info, L, L,
                L);
  void (*trtri)(Text uplo, Text diag, Int n, T *a, Int lda, int *info, L, L);
  void (*getrf)(Int m, Int n, T *a, Int lda, int *ipiv, int *info);
  void (*getrs)(Text trans, Int n, Int nrhs, const T *a, Int lda, Int ipiv, T *b, Int ldb, int *info, L);
  void (*getri)(Int n, T *a, Int lda, Int ipiv, T *work, Int lwork, int *info);
  void (*sytrf)(Text uplo, Int n, T *a, Int lda, int *ipiv, T *work, Int lwork, int *info, L);
  void (*sytrs)(Text uplo, Int n, Int nrhs, const T *a, Int lda, Int ipiv, T *b, Int ldb, int *info, L);
  void (*geqrf)(Int m, Int n, T *a, Int lda, T *tau, T *work, Int lwork, int *info);
  void (*geqp3)(Int m, Int n, T *a, Int lda, int *jpvt, T *tau, T *work, Int lwork, int *info);
  void (*orgqr)(Int m, Int n, Int k, T *a, Int lda, const T *tau, T *work, Int lwork, int *info);
  void (*ormqr)(Text side, Text trans, Int m, Int n, Int k, const T *a, Int lda, const T *tau, T *c, Int ldc, T *work,
                Int lwork, int *info, L, L);
  void (*gelqf)(Int m, Int n, T *a, Int lda, T *tau, T *work, Int lwork, int *info);
  void (*orglq)(Int m, Int n, Int k, T *a, Int lda, const T *tau, T *work, Int lwork, int *info);
  void (*ormlq)(Text side, Text trans, Int m, Int n, Int k, const T *a, Int lda, const T *tau, T *c, Int ldc, T *work,
                Int lwork, int *info, L, L);
  void (*syevd)(Text jobz, Text uplo, Int n, T *a, Int lda, T *w, T *work, Int lwork, int *iwork, Int liwork, int *info,
                L, L);
  void (*sytrd)(Text uplo, Int n, T *a, Int lda, T *d, T *e, T *tau, T *work, Int lwork, int *info, L);
  void (*stedc)(Text compz, Int n, T *d, T *e, T *z, Int ldz, T *work, Int lwork, int *iwork, Int liwork, int *info, L);
  void (*gesdd)(Text jobz, Int m, Int n, T *a, Int lda, T *s, T *u, Int ldu, T *vt, Int ldvt, T *work, Int lwork,
                int *iwork, int *info, L);
  void (*gesvd)(Text jobu, Text jobvt, Int m, Int n, T *a, Int lda, T *s, T *u, Int ldu, T *vt, Int ldvt, T *work,
                Int lwork, int *info, L, L);
  void (*gelsd)(Int m, Int n, Int nrhs, T *a, Int lda, T *b, Int ldb, T *s, const T *rcond, int *rank, T *work,
                Int lwork, int *iwork, int *info);
  void (*gelsy)(Int m, Int n, Int nrhs, T *a, Int lda, T *b, Int ldb, int *jpvt, const T *rcond, int *rank, T *work,
                Int lwork, int *info);
};

template <class T> class Lapack {
public:
  Lapack(const Blas &library, const LapackRoutines<T> &routines) : library(library), routines_(routines) {}

  const Blas &library;

  int potrf(char uplo, int n, T *a, int lda) const {
    return told([&](int *info) { routines_.potrf(&uplo, &n, a, &lda, info, 1); });
  }
  int potrs(char uplo, int n, int nrhs, const T *a, int lda, T *b, int ldb) const {
    return told([&](int *info) { routines_.potrs(&uplo, &n, &nrhs, a, &lda, b, &ldb, info, 1); });
  }
  int potri(char uplo, int n, T *a, int lda) const {
    return told([&](int *info) { routines_.potri(&uplo, &n, a, &lda, info, 1); });
  }
  void trsm(char side, char uplo, char trans, char diag, int m, int n, T alpha, const T *a, int lda, T *b,
            int ldb) const {
    routines_.trsm(&side, &uplo, &trans, &diag, &m, &n, &alpha, a, &lda, b, &ldb, 1, 1, 1, 1);
  }
  int trtrs(char uplo, char trans, char diag, int n, int nrhs, const T *a, int lda, T *b, int ldb) const {
    return told([&](int *info) { routines_.trtrs(&uplo, &trans, &diag, &n, &nrhs, a, &lda, b, &ldb, info, 1, 1, 1); });
  }
  int trtri(char uplo, char diag, int n, T *a, int lda) const {
    return told([&](int *info) { routines_.trtri(&uplo, &diag, &n, a, &lda, info, 1, 1); });
  }

  int getrf(int m, int n, T *a, int lda, int *ipiv) const {
    return told([&](int *info) { routines_.getrf(&m, &n, a, &lda, ipiv, info); });
  }
  int getrs(char trans, int n, int nrhs, const T *a, int lda, const int *ipiv, T *b, int ldb) const {
    return told([&](int *info) { routines_.getrs(&trans, &n, &nrhs, a, &lda, ipiv, b, &ldb, info, 1); });
  }
  int getri(int n, T *a, int lda, const int *ipiv, T *work, int lwork) const {
    return told([&](int *info) { routines_.getri(&n, a, &lda, ipiv, work, &lwork, info); });
  }
  int sytrf(char uplo, int n, T *a, int lda, int *ipiv, T *work, int lwork) const {
    return told([&](int *info) { routines_.sytrf(&uplo, &n, a, &lda, ipiv, work, &lwork, info, 1); });
  }
  int sytrs(char uplo, int n, int nrhs, const T *a, int lda, const int *ipiv, T *b, int ldb) const {
    return told([&](int *info) { routines_.sytrs(&uplo, &n, &nrhs, a, &lda, ipiv, b, &ldb, info, 1); });
  }

  int geqrf(int m, int n, T *a, int lda, T *tau, T *work, int lwork) const {
    return told([&](int *info) { routines_.geqrf(&m, &n, a, &lda, tau, work, &lwork, info); });
  }
  int geqp3(int m, int n, T *a, int lda, int *jpvt, T *tau, T *work, int lwork) const {
    return told([&](int *info) { routines_.geqp3(&m, &n, a, &lda, jpvt, tau, work, &lwork, info); });
  }
  int orgqr(int m, int n, int k, T *a, int lda, const T *tau, T *work, int lwork) const {
    return told([&](int *info) { routines_.orgqr(&m, &n, &k, a, &lda, tau, work, &lwork, info); });
  }
  int ormqr(char side, char trans, int m, int n, int k, const T *a, int lda, const T *tau, T *c, int ldc, T *work,
            int lwork) const {
    return told([&](int *info) {
      routines_.ormqr(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, info, 1, 1);
    });
  }
  int gelqf(int m, int n, T *a, int lda, T *tau, T *work, int lwork) const {
    return told([&](int *info) { routines_.gelqf(&m, &n, a, &lda, tau, work, &lwork, info); });
  }
  int orglq(int m, int n, int k, T *a, int lda, const T *tau, T *work, int lwork) const {
    return told([&](int *info) { routines_.orglq(&m, &n, &k, a, &lda, tau, work, &lwork, info); });
  }
  int ormlq(char side, char trans, int m, int n, int k, const T *a, int lda, const T *tau, T *c, int ldc, T *work,
            int lwork) const {
    return told([&](int *info) {
      routines_.ormlq(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, info, 1, 1);
    });
  }

  int syevd(char jobz, char uplo, int n, T *a, int lda, T *w, T *work, int lwork, int *iwork, int liwork) const {
    return told(
        [&](int *info) { routines_.syevd(&jobz, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, info, 1, 1); });
  }
  int sytrd(char uplo, int n, T *a, int lda, T *d, T *e, T *tau, T *work, int lwork) const {
    return told([&](int *info) { routines_.sytrd(&uplo, &n, a, &lda, d, e, tau, work, &lwork, info, 1); });
  }
  int stedc(char compz, int n, T *d, T *e, T *z, int ldz, T *work, int lwork, int *iwork, int liwork) const {
    return told([&](int *info) { routines_.stedc(&compz, &n, d, e, z, &ldz, work, &lwork, iwork, &liwork, info, 1); });
  }
  int gesdd(char jobz, int m, int n, T *a, int lda, T *s, T *u, int ldu, T *vt, int ldvt, T *work, int lwork,
            int *iwork) const {
    return told([&](int *info) {
      routines_.gesdd(&jobz, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, info, 1);
    });
  }
  int gesvd(char jobu, char jobvt, int m, int n, T *a, int lda, T *s, T *u, int ldu, T *vt, int ldvt, T *work,
            int lwork) const {
    return told([&](int *info) {
      routines_.gesvd(&jobu, &jobvt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, info, 1, 1);
    });
  }
  int gelsd(int m, int n, int nrhs, T *a, int lda, T *b, int ldb, T *s, T rcond, int *rank, T *work, int lwork,
            int *iwork) const {
    return told([&](int *info) {
      routines_.gelsd(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, iwork, info);
    });
  }
  int gelsy(int m, int n, int nrhs, T *a, int lda, T *b, int ldb, int *jpvt, T rcond, int *rank, T *work,
            int lwork) const {
    return told(
        [&](int *info) { routines_.gelsy(&m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, work, &lwork, info); });
  }

private:
  template <class Call> static int told(Call &&call) {
    int info = 0;
    call(&info);
    return info;
  }

  LapackRoutines<T> routines_;
};

// Returns null if there is no BLAS, if it lacks some of the routines, or if the candidates are "none". The pointer
// stays valid.
template <class T> const Lapack<T> *lapack();

// The library that computes linear algebra, such as "OpenBLAS, LAPACK 3.9.0"; `name` is empty for the dylib's
// implementation. `problem` says why the LAPACK of a BLAS that was found is not used.
struct LapackReport {
  std::string name, problem;
};
LapackReport lapack_report();

// Converts a size to LAPACK's int. Throws Failure if it does not fit.
int lapack_int(int64_t size);

// Returns the workspace size, in elements, that a routine requires. call(&answer, -1) queries it.
template <class T, class Query> int lapack_workspace(Query &&query) {
  T answer = 0;
  query(&answer, -1);
  // A float answer may have been rounded down.
  const double most = std::ceil(static_cast<double>(std::nextafter(answer, std::numeric_limits<T>::infinity())));
  return lapack_int(most >= INT_MAX ? int64_t(INT_MAX) + 1 : std::max<int64_t>(1, static_cast<int64_t>(most)));
}

} // namespace orchard
