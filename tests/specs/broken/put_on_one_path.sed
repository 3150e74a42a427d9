/role scale/,/role write/s/^      }$/      } else {\n        put result = 0;\n      }/
