// register.c: the library's devices are those of the runtime and the simulator. Neither of the two rooms
// includes the other, so they are brought together here, before any function of the library can be called.
#include "simulator/sim.h"

__attribute__((constructor)) static void register_simulator(void) {
    // The first of its scheme in a table with room: nothing that can fail.
    (void)jfa_sim_register(NULL);
}
