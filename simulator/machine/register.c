#include "simulator/sim.h"

// Apart from device.c, so that the simulator can be used without the runtime.
jfa_status jfa_sim_register(jfa_error *err) {
    return jfa_backend_register(jfa_sim_backend(), err);
}
