/* A C program that knows tutti only as an installed package: sums the ranks, and checks the sum and the world's size,
 * which is its argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tutti_last_error());
  return 1;
}

int main(int argc, char** argv) {
  tutti_init_options options = TUTTI_INIT_OPTIONS;
  tutti_group* world = NULL;
  int rank, size, sum;
  char version[32];

  if (argc != 2) return 2;
  sprintf(version, "%d.%d.%d", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH);
  if (strcmp(version, tutti_version()) != 0) {
    fprintf(stderr, "header %s, library %s\n", version, tutti_version());
    return 1;
  }
  if (tutti_init(&options, &world) != TUTTI_OK) return failed("tutti_init");
  rank = tutti_group_rank(world);
  size = tutti_group_size(world);
  if (tutti_all_reduce(world, &rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, NULL) != TUTTI_OK) return failed("all_reduce");
  if (size != atoi(argv[1]) || sum != size * (size - 1) / 2) {
    fprintf(stderr, "rank %d of %d, expected %s: sum %d\n", rank, size, argv[1], sum);
    return 1;
  }
  return tutti_group_free(world) == TUTTI_OK ? 0 : failed("tutti_group_free");
}
