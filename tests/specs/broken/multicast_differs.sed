s/+ place//
