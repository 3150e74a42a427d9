s|schedule forward rownorm for sm_100|schedule forward of rownorm for sm_100|
