// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AssetRegistry} from "../src/AssetRegistry.sol";
import {Multicall3} from "../src/doubles/Multicall3.sol";
import {World} from "./World.sol";

/// One step each, for .gas-snapshot: a change of cost is seen before it is paid. Nothing here is random.
contract GasTest is World {
    uint256 private minted;
    uint256 private bound;
    uint256 private activated;
    uint256 private claimed;
    uint256 private offered;
    uint256 private flagged;
    uint256[] private hundred;
    Multicall3 private multicall;

    function setUp() public override {
        super.setUp();
        minted = tokenIn(1);
        bound = tokenIn(2);
        activated = tokenIn(3);
        claimed = tokenIn(4);
        offered = tokenIn(4);
        offer(offered);
        flagged = tokenIn(5);
        multicall = new Multicall3();
        hundred = abi.decode(
            does(issuer, abi.encodeCall(registry.mintBatch, (maker, new bytes32[](100)))), (uint256[])
        );
    }

    function test_deploy() public {
        new AssetRegistry(AssetRegistry.Holders(admin, issuer, binder, qa, attester, guardian, recycler), "", "");
    }

    function test_mint() public {
        mint();
    }

    function test_mintBatchOf10() public {
        bytes32[] memory metadata = new bytes32[](10);
        for (uint256 i = 0; i < 10; ++i) metadata[i] = METADATA;
        does(issuer, abi.encodeCall(registry.mintBatch, (maker, metadata)));
    }

    function test_mintWithId() public {
        does(issuer, abi.encodeCall(registry.mintWithId, (maker, 1 << 200, METADATA)));
    }

    function test_bindTag() public {
        does(binder, abi.encodeCall(registry.bindTag, (minted, tagOf(minted))));
    }

    function test_activate() public {
        does(qa, abi.encodeCall(registry.activate, (bound)));
    }

    function test_claimRelayed() public {
        claimFor(activated, owner);
    }

    function test_initiateTransfer() public {
        offer(claimed);
    }

    function test_acceptTransfer() public {
        does(recipient, abi.encodeCall(registry.acceptTransfer, (offered)));
    }

    function test_acceptTransferBySig() public {
        (, uint64 expiry, uint32 nonce) = registry.pendingTransfer(offered);
        bytes memory signature = signed(recipient, acceptHash(offered, owner, recipient, expiry, nonce));
        does(stranger, abi.encodeCall(registry.acceptTransferBySig, (offered, signature)));
    }

    function test_flag() public {
        does(guardian, abi.encodeCall(registry.flag, (claimed, 0x04, REASON)));
    }

    function test_resolve() public {
        does(guardian, abi.encodeCall(registry.resolve, (flagged, 0x04, REASON)));
    }

    function test_recycle() public {
        does(owner, abi.encodeCall(registry.recycle, (claimed)));
    }

    function test_getAsset() public view {
        registry.getAsset(claimed);
    }

    function test_getAssetByTag() public view {
        registry.getAssetByTag(tagOf(claimed));
    }

    function test_getAssetsOf100() public view {
        registry.getAssets(hundred);
    }

    function test_getAssetsWithMetadataOf100() public view {
        registry.getAssetsWithMetadata(hundred);
    }

    function test_aggregate3Of100() public {
        Multicall3.Call3[] memory calls = new Multicall3.Call3[](100);
        for (uint256 i = 0; i < 100; ++i) {
            calls[i] = Multicall3.Call3(address(registry), true, abi.encodeCall(registry.getAsset, (hundred[i])));
        }
        multicall.aggregate3(calls);
    }
}
