/* MPI's own allreduce by size, beside bench/distributed.ts: mpicc -O2 bench/support/distributed.c && mpirun -n 4 ./a.out */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long bytes = 4; bytes <= 1L << 26; bytes *= 4) {
    float* x = calloc(bytes / 4, 4);
    double best = 1e9;
    for (int count = 0; count < (bytes < 1 << 20 ? 50 : 10); count++) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, x, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      const double time = MPI_Wtime() - start;
      if (time < best) best = time;
    }
    if (rank == 0) printf("%10ld bytes %10.1f us %.3f GB/s\n", bytes, best * 1e6, bytes / best / 1e9);
    free(x);
  }
  MPI_Finalize();
}
